/**
 * The page of an answer link. The secret is what follows `#`, which no browser sends to a server by itself: the page posts it.
 * Limit: it shows and answers one question, with plain elements and nothing of the console, so that it is small on a phone.
 */
import type { Part } from "../../schema/a2a.ts";
import { isStored } from "../../schema/file-url.ts";
import type { LinkAnswered, LinkQuestion } from "../../schema/link.ts";
import { piecesOf } from "../ui/pieces.ts";
import { visible } from "../ui/visible.ts";

const token = location.hash.slice(1);
const main = document.querySelector("main") ?? document.body;

/** `status` 0: the broker did not answer. */
type Answer<T> =
  | { readonly ok: true; readonly body: T }
  | { readonly ok: false; readonly status: number; readonly detail: string };

/** The broker of this page made the body, so its shape is known. */
async function post<T>(path: string, body: Record<string, unknown>): Promise<Answer<T>> {
  try {
    const response = await fetch(`v1/links/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token, ...body }),
    });
    const { status } = response;
    if (!response.ok) return { ok: false, status, detail: detailOf(await response.json()) };
    const answer: T = await response.json();
    return { ok: true, body: answer };
  } catch {
    return { ok: false, status: 0, detail: "The broker does not answer. Try again." };
  }
}

function detailOf(body: unknown): string {
  const { detail, recovery } = Object(body);
  return [detail, recovery].filter((text) => typeof text === "string").join(" ") || "The broker refused it.";
}

function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  text = "",
  className = "",
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.textContent = text;
  if (className !== "") made.className = className;
  return made;
}

function signIn(text: string, delegation = ""): HTMLElement {
  const line = element("p");
  const link = element("a", text);
  link.href = delegation === "" ? "./" : `./#/d/${delegation}`;
  line.append(link);
  return line;
}

/** A link that the broker refuses is dead; one that it could not look at may be tried again. */
function showFailure(status: number, detail: string): void {
  const isDead = status === 400 || status === 404;
  const again = element("button", "Try again");
  again.type = "button";
  again.addEventListener("click", () => {
    again.disabled = true;
    void start();
  });
  main.replaceChildren(
    element("h1", isDead ? "This link answers nothing" : "The question could not be read"),
    element("p", detail, "failed"),
    ...(isDead ? [signIn("Open the console")] : [again]),
  );
}

type Request = LinkQuestion["interrupt"]["requests"][number];

/** Web addresses in it are links, whose text is the whole address. */
function words(text: string): HTMLElement {
  const line = element("p", "", "words");
  line.dir = "auto";
  for (const piece of piecesOf(text)) {
    if (!piece.isLink) line.append(piece.text);
    else line.append(Object.assign(element("a", piece.text), { href: piece.text, ...NEW_TAB }));
  }
  return line;
}
const NEW_TAB = { target: "_blank", rel: "noreferrer noopener" } as const;

const json = (value: unknown): string => visible(JSON.stringify(value, null, 2));

/** A file is named, and shown in the console. */
function partElement({ text, raw, url, data, filename, mediaType }: Part, delegation: string): HTMLElement {
  if (text !== undefined) return words(text);
  if (raw === undefined && (url === undefined || !isStored({ url })))
    return url === undefined ? element("pre", json(data)) : words(filename ? `${filename}: ${url}` : url);
  const kilobytes = raw === undefined ? "" : `${Math.ceil((raw.length * 3) / 4 / 1000)} kB`;
  const facts = [mediaType, kilobytes].filter(Boolean).join(", ");
  const line = element(
    "p",
    visible(`File: ${filename ?? "without a name"}${facts && ` (${facts})`}. `),
    "words",
  );
  const link = Object.assign(element("a", "Sign in to see it"), { href: `./#/d/${delegation}` });
  line.append(link);
  return line;
}

/** Each argument below its name, a text in its lines. */
function argumentList(given: unknown): HTMLElement {
  const list = element("dl");
  for (const [name, value] of Object.entries(Object(given))) {
    const isText = typeof value === "string" && value !== "";
    const shown = element("dd", isText ? visible(value) : json(value));
    if (isText) shown.dir = "auto";
    list.append(element("dt", visible(name)), shown);
  }
  return list;
}

/** `isHere`: it is answered on this page, whose buttons are the choices. */
function requestSection(
  { message, action, options }: Request,
  isHere: boolean,
  delegation: string,
): HTMLElement {
  const section = element("section");
  for (const part of message.parts) section.append(partElement(part, delegation));
  if (action) {
    section.append(element("p", `It wants to do: ${visible(action.name)}`, "words"));
    section.append(argumentList(action.arguments));
  }
  if (options && !action && !isHere) {
    const choices = options.map((one) => (typeof one === "string" ? visible(one) : json(one)));
    section.append(element("p", `Choices: ${choices.join(", ")}`, "dim"));
  }
  return section;
}

/** Who has approved so far; empty if one approval is enough. */
function approvals(votes: LinkAnswered["votes"]): string {
  const { needed = 1, given = [] } = votes ?? {};
  if (needed < 2) return "";
  const by = given.length > 0 ? `: ${given.map((one) => one.by).join(", ")}` : "";
  return `${given.length} of ${needed} approvals${by}.`;
}

const NO_APPROVAL: Readonly<Record<NonNullable<LinkQuestion["no_approval"]>, string>> = {
  not_counted: "Your approval does not count for this question; others must approve it.",
  given: "You have approved it.",
  other_votes:
    "Others have approved something else than what is shown here, such as changed arguments. To approve, sign in and see it: an approval here would void theirs.",
};

function noApproval(why: keyof typeof NO_APPROVAL, { requests }: LinkQuestion["interrupt"]): string {
  // Without options, an action can be denied.
  const isDeniable = requests.every(
    ({ options = [] }) => !options.includes("approve") || options.includes("deny"),
  );
  const denial = why === "given" ? " You can still deny it." : " You can deny it.";
  return `${NO_APPROVAL[why]}${isDeniable ? denial : ""}`;
}

function votesLines({ interrupt, no_approval, delegation_id }: LinkQuestion): HTMLElement[] {
  const so_far = approvals(interrupt.votes);
  return [
    ...(so_far === "" ? [] : [element("p", so_far, "words")]),
    ...(no_approval ? [element("p", noApproval(no_approval, interrupt), "warning")] : []),
    ...(no_approval === "other_votes" ? [signIn("Sign in to see what they approved", delegation_id)] : []),
  ];
}

function show(question: LinkQuestion): void {
  const { agent, person, interrupt, task_preview, answer, delegation_id } = question;
  document.title = `${agent} asks · Errand`;
  const until = new Date(interrupt.expires_at).toLocaleString([], { timeZoneName: "short" });
  main.replaceChildren(
    element("h1", `${agent} asks`),
    element("p", task_preview, "dim words"),
    ...interrupt.requests.map((request) => requestSection(request, answer !== "sign_in", delegation_id)),
    ...votesLines(question),
    element("p", `Whoever has this link answers as ${person}. Do not pass it on.`, "warning"),
    element("p", `Open until ${until}, or until somebody answers.`, "dim"),
    ...controls(question, answer),
  );
}

function controls(
  { agent, interrupt, no_approval }: LinkQuestion,
  answer: LinkQuestion["answer"],
): HTMLElement[] {
  if (answer === "sign_in") return [signIn("Sign in to answer it")];
  const typed = element("textarea");
  typed.maxLength = 10_000;
  typed.dir = "auto";
  const [only] = interrupt.requests;
  const options = only?.options ?? [];
  const choices = element("div", "", "choices");
  const outcome = element("p");
  const press = (
    label: string,
    className: string,
    done: string,
    body: () => Record<string, unknown> | null,
  ) => {
    const button = element("button", label, className);
    button.type = "button";
    button.addEventListener("click", async () => {
      const given = body();
      if (given === null) return typed.focus();
      for (const one of choices.querySelectorAll("button")) one.disabled = true;
      outcome.className = "dim";
      outcome.textContent = "Sending …";
      const sent = await post<LinkAnswered>("answer", given);
      if (sent.ok) {
        const { votes } = sent.body;
        main.replaceChildren(
          element("h1", done),
          ...(votes ? [element("p", approvals(votes), "words")] : []),
          element(
            "p",
            `${votes ? `${agent} waits until more people approve.` : `${agent} goes on.`} This link answers nothing more.`,
          ),
        );
        return;
      }
      for (const one of choices.querySelectorAll("button")) one.disabled = false;
      outcome.className = "failed";
      outcome.textContent = sent.detail;
    });
    choices.append(button);
  };
  if (answer === "text" && options.length > 0) {
    const offered = options.filter(isText).filter((option) => !no_approval || option === "deny");
    for (const option of offered)
      press(visible(option), "", `Sent: ${visible(option)}`, () =>
        option === "approve" || option === "deny" ? { decision: option } : { text: option },
      );
    return [choices, outcome];
  }
  const label = element(
    "label",
    answer === "decision" ? "A comment for the agent, if you like" : "Your answer",
  );
  label.append(typed);
  if (answer === "decision") {
    const comment = () => (typed.value.trim() === "" ? {} : { text: typed.value });
    if (!no_approval) press("Approve", "approve", "Approved", () => ({ decision: "approve", ...comment() }));
    press("Deny", "deny", "Denied", () => ({ decision: "deny", ...comment() }));
  } else press("Send", "approve", "Sent", () => (typed.value.trim() === "" ? null : { text: typed.value }));
  return [label, choices, outcome];
}

const isText = (option: unknown): option is string => typeof option === "string";

async function start(): Promise<void> {
  const found = await post<LinkQuestion>("question", {});
  if (found.ok) show(found.body);
  else showFailure(found.status, found.detail);
}
void start();
// Another link, opened in the same tab, changes only what follows `#`.
addEventListener("hashchange", () => location.reload());
