/* The page: asks the worker for the baseline and for your policy, and shows both. */

import { curves, gantt, jobsOf, waiting, waits } from "./figures.js";

const place = (id) => document.getElementById(id);
const [code, baseline, hosts, own, run, stop, state] =
  ["code", "baseline", "hosts", "log", "run", "stop", "state"].map(place);

let worker, answers, file;

function begin(words) {
  say(words);
  run.disabled = true;
  worker?.terminate();
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data }) => heard(data);
  worker.onerror = (error) => say(error.message, "error");
}

function say(words, kind = "") {
  state.textContent = words;
  state.className = kind;
}

function heard(data) {
  if (data.failed) return say(`Python cannot be started: ${data.failed}`, "error");
  if (data.ready) {
    run.disabled = false;
    if (file) worker.postMessage({ file });
    return say("Ready.");
  }
  answers[data.asked] = data.answer;
  if (answers.length === 1 && !data.answer.error) return ask(1);
  run.disabled = false;
  stop.disabled = true;
  const failed = answers.find((answer) => answer.error);
  if (failed) return say(failed.error, "error");
  show();
  say("Done.");
}

/* The first simulation is the baseline, the second is of the code. */
function ask(asked) {
  const log = file ? file.name : "sample.swf";
  const request = { log, hosts: hosts.value ? Number(hosts.value) : null };
  Object.assign(request, asked ? { code: code.value } : { scheduler: baseline.value });
  say(asked ? "Your policy ..." : `${baseline.value} ...`);
  worker.postMessage({ place: asked, request });
}

function show() {
  const [first, second] = answers.map((answer) => answer.rows);
  const texts = new Map(second);
  const row = ([label, text]) => {
    const cells = [label.trim(), text, texts.get(label) ?? "-"];
    const made = document.createElement("tr");
    made.append(...cells.map((each) => Object.assign(document.createElement("td"), { textContent: each })));
    if (label.startsWith(" ")) made.className = "part";
    return made;
  };
  place("rows").replaceChildren(...first.map(row));
  place("remarks").textContent = [...new Set(answers.flatMap((answer) => answer.remarks))].join("\n");
  const jobs = answers.map((answer) => jobsOf(answer.jobs));
  place("results").hidden = false;
  curves(place("queue"), ["days", "jobs that wait"], jobs.map(waiting));
  curves(place("waits"), ["wait in hours", "% of the jobs"], jobs.map(waits));
  gantt(place("gantt"), jobs[1]);
  const link = place("download");
  URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob([answers[1].jobs], { type: "text/csv" }));
}

run.onclick = () => {
  run.disabled = true;
  stop.disabled = false;
  answers = [];
  ask(0);
};

stop.onclick = () => {
  stop.disabled = true;
  begin("Stopped. Python starts again ...");
};

own.onchange = async () => {
  const [chosen] = own.files;
  file = chosen && { name: chosen.name.replace(/[^\w.-]/g, "_"), content: await chosen.arrayBuffer() };
  hosts.value = file ? "" : "64";
  if (file && !run.disabled) worker.postMessage({ file });
};

code.onkeydown = (event) => {
  if (event.key !== "Tab" || event.shiftKey) return;
  event.preventDefault();
  code.setRangeText("    ", code.selectionStart, code.selectionEnd, "end");
};

code.value = await (await fetch("policy.py")).text();
begin("Python is being loaded ...");
