// Calls and streams of the server; addresses are relative, so the token goes along.

export async function ask(page, name, asked = {}, signal = undefined) {
  let reply;
  try {
    reply = await fetch(`api/${page}/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(asked),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new Error("the explorer does not answer: it was stopped, or is gone"), { gone: true });
  }
  const found = await reply.json();
  if (!reply.ok) throw Object.assign(new Error(found.error), { kind: found.kind });
  return found;
}

// A conversation: what it says goes to onMessage, bytes as an ArrayBuffer; it ends with onEnd.
export function stream(page, name, onMessage, onEnd = () => {}) {
  const address = new URL(`streams/${page}/${name}`, document.baseURI);
  address.protocol = "ws:";
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  const waiting = [];
  let closed = false;
  socket.onopen = () => waiting.splice(0).forEach((text) => socket.send(text));
  socket.onmessage = ({ data }) => { if (!closed) onMessage(typeof data === "string" ? JSON.parse(data) : data); };
  socket.onclose = () => onEnd(closed);
  return {
    say(message) {
      const text = JSON.stringify(message);
      if (socket.readyState === WebSocket.CONNECTING) waiting.push(text);
      else if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close() {
      closed = true;
      socket.close();
    },
  };
}
