import { h, replace } from "../dom.js";

export async function mount(root, context) {
  const { variables } = await context.call("variables");
  replace(root, h("ul", {}, variables.map((name) => h("li", {}, name))));
}
