/* Python in a thread of its own, so that the page answers while a simulation runs. */

import { loadPyodide } from "./pyodide/pyodide.mjs";

async function fetched(name) {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer;
}

async function prepared() {
  const python = await loadPyodide();
  for (const wheel of await (await fetched("wheels.json")).json())
    python.unpackArchive(await (await fetched(`wheels/${wheel}`)).arrayBuffer(), "wheel");
  python.FS.writeFile("sample.swf", await (await fetched("sample.swf")).text());
  python.runPython(await (await fetched("simulate.py")).text());
  return python;
}

const ready = prepared();
ready.then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ failed: String(error) })
);

onmessage = async ({ data }) => {
  const python = await ready;
  if (data.file) {
    python.FS.writeFile(data.file.name, new Uint8Array(data.file.content));
    return;
  }
  const simulate = python.globals.get("simulate");
  try {
    postMessage({ asked: data.place, answer: JSON.parse(simulate(JSON.stringify(data.request))) });
  } catch (error) {
    const last = String(error.message).trim().split("\n").pop();
    postMessage({ asked: data.place, answer: { error: last, remarks: [] } });
  } finally {
    simulate.destroy();
  }
};
