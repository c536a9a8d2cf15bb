import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Part } from "../../schema/a2a.ts";
import { go, href, route } from "../app/route.ts";
import { agentOf, agents } from "../data/agents.ts";
import { show } from "../data/delegations.ts";
import { PresenceOf } from "../live/agent-row.tsx";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { sendByCtrlEnter } from "../ui/submit-keys.ts";
import { useAction } from "../ui/use-action.ts";
import { count } from "../ui/words.ts";
import { type FirstValues, useFirstValues } from "./again.ts";
import { inputOf } from "./input.ts";

/** Delegates work to an agent, and opens the delegation. The address may name one to be delegated again. */
export function Delegate() {
  const { first, error, isReading } = useFirstValues();
  if (isReading) return <p class="loading">Reading the delegation …</p>;
  return (
    <>
      <Problem error={error} />
      <DelegateForm key={route.value.params.get("again")} first={first} />
    </>
  );
}

function DelegateForm({ first }: { readonly first: FirstValues | null }) {
  const target = useSignal(first?.target ?? route.value.params.get("target") ?? "");
  const parts = useSignal(first?.parts ?? []);
  const { isRunning, error, run } = useAction();
  const form = useRef<HTMLFormElement>(null);
  // The agent may be named by the address.
  useEffect(() => {
    const start = first ? "textarea" : ":is(input, textarea):placeholder-shown";
    form.current?.querySelector<HTMLElement>(start)?.focus();
  }, []);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const form = new FormData(event.currentTarget);
    void run(async () => {
      const input = await inputOf(form, parts.value);
      const delegation = await session.value?.connection.delegator.delegate(input);
      if (!delegation) return;
      show(delegation);
      go(href("live", { open: delegation.id }));
    });
  };
  const agent = agentOf(target.value);
  const priority = first?.priority ?? 5;
  return (
    <section aria-labelledby="delegate-title">
      <h1 id="delegate-title">Delegate</h1>
      <form class="fields delegate" ref={form} onSubmit={submit}>
        <label class="wide">
          <span>Agent</span>
          <input
            name="target"
            required
            list="targets"
            autocomplete="off"
            placeholder={`for example ${agents.value?.[0]?.name ?? "scout"}`}
            value={target.value}
            onInput={(event) => {
              target.value = event.currentTarget.value;
            }}
          />
          <datalist id="targets">
            {agents.value?.map(({ name, description }) => (
              <option key={name} value={name}>
                {description}
              </option>
            ))}
          </datalist>
          {agent && <PresenceOf agent={agent} />}
          {agents.value?.length === 0 && (
            <small>
              There is no agent yet. <a href={href("agents")}>Agents</a> says how to get one.
            </small>
          )}
        </label>
        <label class="wide">
          <span>Task</span>
          <textarea
            name="task"
            rows={5}
            required
            placeholder="What is to be done"
            defaultValue={first?.task}
            onKeyDown={sendByCtrlEnter}
          />
        </label>
        <label class="wide">
          <span>
            Files <small>optional</small>
          </span>
          <input type="file" name="files" multiple />
        </label>
        {parts.value.length > 0 && (
          <p class="wide kept-parts">
            <span>
              With {count(parts.value.length, "part")} of the first task:{" "}
              <Said>{parts.value.map(partName).join(", ")}</Said>
            </span>
            <button
              type="button"
              onClick={() => {
                parts.value = [];
              }}
            >
              Leave out
            </button>
          </p>
        )}
        <label>
          <span>Priority</span>
          <select name="priority" defaultValue={priority}>
            {[9, 8, 7, 6, 5, 4, 3, 2, 1, 0].map((one) => (
              <option key={one} value={one} selected={one === priority}>
                {one === 9 ? "9, first" : one === 5 ? "5, as usual" : one === 0 ? "0, last" : one}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>
            Deadline <small>optional</small>
          </span>
          <input type="datetime-local" name="deadline" />
        </label>
        <label class="wide">
          <span>
            A part of <small>optional: the id of a live delegation</small>
          </span>
          <input
            name="parent"
            autocomplete="off"
            placeholder="dlg_…"
            defaultValue={route.value.params.get("parent") ?? ""}
          />
        </label>
        <label class="wide">
          <span>
            Approve in advance{" "}
            <small>optional: all, or names of actions; of others the agent asks first</small>
          </span>
          <input
            name="approve"
            autocomplete="off"
            placeholder="for example deploy, fs.*"
            defaultValue={first?.approve}
          />
        </label>
        <Problem error={error} />
        <div class="buttons wide">
          <button type="submit" class="primary" title="Ctrl+Enter" disabled={isRunning}>
            Delegate
          </button>
        </div>
      </form>
    </section>
  );
}

/** What a part is called in the form. */
const partName = ({ filename, url, data }: Part): string =>
  filename ?? url ?? (data === undefined ? "a file" : "data");
