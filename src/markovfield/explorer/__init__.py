"""The explorer: a page in the browser that shows a model, takes evidence by clicks and tells what follows.

`markovfield.explore` and the command ``markovfield explore`` start a server on this machine alone. What is shown are
pages; each is offered for the models it is about.

Files, in reading order:

* `explorer`: the public function, and the object that holds the running server;
* `core/subject`: what is explored: a model or its file, which may change, and what was computed about it;
* `core/page`: what a page is made of; `pages/`: the pages, one module each;
* `application`: the routes; `guard`: who may ask; `replies`: JSON and errors as one sentence; `assets`: the files that
  are handed out; `streams`: conversations over a websocket;
* `static/`: the front end: ES modules and a style sheet, as they are, without a build step. Graphs are drawn as SVG by
  our own module: layouts come from `markovfield.plot`, bars and labels stand in the nodes, every node can be reached by
  the keyboard, a drawing is exported as it is, and the strict content policy holds (the libraries of graph drawing that
  were tried write style elements, which it forbids, and weigh 400 kB and more).

How a page is added:

1. ``pages/<name>.py`` with ``PAGE = Page(name, title, offered, calls={...}, streams={...})``. ``offered(subject)``
   says whether the page is for this model. A call ``f(subject, asked)`` takes a dict from the browser and gives what
   JSON can hold (arrays of NumPy as well); it runs in a thread. A stream ``f(subject, channel)`` runs in a thread of
   its own, sends with ``channel.send(...)``, reads the last thing that the browser said with ``channel.latest()``,
   and ends when ``channel.closed``. Errors of the library reach the browser as their sentence.
2. Its name in ``PAGES`` of ``pages/__init__.py``.
3. ``static/pages/<name>.js`` with ``export function mount(root, context)``: it fills the element ``root`` and may
   return a function that is called when the page is left. ``context`` has ``call(name, asked)``, a promise of the
   answer; ``stream(name, onMessage)``, which gives ``{say(...), close()}``; ``subject`` (what ``/api/subject`` said);
   ``tell(sentence)`` for the line at the bottom, ``calm()`` takes an error off it. ``static/dom.js`` makes elements;
   text goes in as text, never as HTML. More modules of a page: ``static/pages/<name>/...``; what pages share, fields,
   charts, heat maps, export: ``static/pages/shared``. All files below ``static/`` are handed out.

The page of a model that has no page says so. `tests/explorer` has helpers that start a server and a browser.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
