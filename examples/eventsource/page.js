// The address names the conversation, so that a reload, another tab and a link show the same one.
const conversation = location.hash.slice(1) || crypto.randomUUID();
history.replaceState(null, "", `#${conversation}`);
addEventListener("hashchange", () => location.reload());

const turns = `/v1/conversations/${conversation}/turns`;
const unsent = `turnd:unsent:${conversation}`;
const form = document.querySelector("form");
const trouble = document.querySelector("#trouble");
const notes = { ABANDON_REASON_CANCELLED: "Stopped." };
let running = "";

form.onsubmit = (submit) => {
  submit.preventDefault();
  const text = form.text.value.trim();
  if (running || text === "") return;
  form.text.value = "";
  // The turn has its id, and is kept, before it leaves the page: sent again under its id, it is the same turn.
  const turn = { turnId: crypto.randomUUID(), content: [{ text: { text } }] };
  sessionStorage.setItem(unsent, JSON.stringify(turn));
  void send(turn);
};

form.stop.onclick = () => call("POST", `${turns}/${running}:cancel`, {});

const listed = await call("GET", turns);
for (const { turn, reply } of (listed?.entries ?? []).reverse()) {
  const shown = show(turn);
  if (reply?.status === "REPLY_STATUS_COMPLETE" || reply?.status === "REPLY_STATUS_ABANDONED") {
    shown.text.textContent = reply.content.map((block) => block.text?.text ?? "").join("");
    shown.note.textContent = notes[reply.abandonReason] ?? "";
  } else follow(turn.turnId, shown);
}
const kept = JSON.parse(sessionStorage.getItem(unsent));
if (kept && !document.getElementById(kept.turnId)) void send(kept);

async function send(turn) {
  const shown = show(turn);
  setRunning(turn.turnId);
  const taken = await call("POST", turns, turn);
  sessionStorage.removeItem(unsent);
  if (taken) follow(turn.turnId, shown);
  else setRunning("");
}

/** Follows the reply to a turn. It can be left and followed again at any time: to listen starts nothing and stops nothing. */
function follow(turnId, { text, note }, cursor = "", wait = 1000) {
  setRunning(turnId);
  const source = new EventSource(`${turns}/${turnId}/events?${new URLSearchParams(cursor && { cursor })}`);
  const on = (kind, hear) =>
    source.addEventListener(kind, (message) => {
      cursor = message.lastEventId;
      hear(JSON.parse(message.data)[kind]);
    });
  const end = (words) => {
    source.close();
    note.textContent = words;
    setRunning("");
  };

  on("delta", ({ kind, text: more }) => {
    if (kind === "BLOCK_KIND_TEXT" || kind === "BLOCK_KIND_REFUSAL") text.textContent += more;
  });
  on("restarted", ({ continues }) => {
    if (!continues) text.textContent = "";
  });
  on("completed", () => end(""));
  on("abandoned", ({ reason }) => end(notes[reason] ?? `Given up: ${reason}`));
  on("held", () => end("Nobody knows yet what came of this reply. Load the page again later."));

  source.onopen = () => (note.textContent = "");
  source.onerror = () => {
    note.textContent = "Connecting again";
    // A lost connection is made again by the EventSource itself, which sends the last id. Only a status other than 200,
    // such as a proxy's 502, makes it give up for good.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, wait, turnId, { text, note }, cursor, Math.min(2 * wait, 30_000));
  };
}

/** Calls turnd until it answers. Every call of this page can be repeated without harm. */
async function call(method, path, body) {
  for (let wait = 500; ; wait = Math.min(2 * wait, 8_000)) {
    try {
      const headers = { "Content-Type": "application/json" };
      const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
      const answer = await response.json();
      if (response.ok || response.status === 404) trouble.textContent = "";
      if (response.ok) return answer;
      if (response.status === 404) return undefined;
      trouble.textContent = answer.message;
      if (response.status !== 429 && response.status < 500) return undefined;
      wait = Math.max(wait, 1000 * (response.headers.get("Retry-After") ?? 0));
    } catch {
      trouble.textContent = "turnd can't be reached. Trying again.";
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** Shows a turn with room for its reply. What a model writes is text, and never markup. */
function show({ turnId, content }) {
  const article = document.createElement("article");
  article.id = turnId;
  const [said, text, note] = ["said", "text", "note"].map((name) => {
    const paragraph = document.createElement("p");
    paragraph.className = name;
    article.append(paragraph);
    return paragraph;
  });
  said.textContent = content.map((block) => block.text?.text ?? "").join("");
  document.querySelector("#turns").append(article);
  return { text, note };
}

function setRunning(turnId) {
  running = turnId;
  form.stop.disabled = turnId === "";
}
