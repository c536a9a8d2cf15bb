import { useSignal } from "@preact/signals";
import type { Agent, AgentPatch, Approvals } from "../../schema/agent.ts";
import { isOperator, isSelf } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";

interface Props {
  readonly agent: Agent;
  readonly onChanged: () => void;
}

const LIMITS = [
  ["max_attempts", "Attempts at one delegation"],
  ["lease_seconds", "Length of a lease, in seconds"],
  ["max_working", "In progress at once (empty: any number)"],
  ["max_waiting", "Queued at most"],
  ["interrupt_ttl_seconds", "A question stays open, in seconds"],
] as const;

/** Changes exactly the settings that were edited; the others stay as they are. */
export function AgentSettings({ agent, onChanged }: Props) {
  const { isRunning, error, run } = useAction();
  const saved = useSignal("");
  const { limits, accepts_from } = agent;
  const mayEdit = isOperator.value || isSelf(agent.name);
  if (!mayEdit || !limits || !accepts_from) return null;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const patch = patchOf(agent, new FormData(event.currentTarget));
    void run(async () => {
      saved.value = "";
      if (Object.keys(patch).length > 0) {
        const change = await session.value?.connection.admin.putAgent(agent.name, patch);
        saved.value = change?.changed.length ? `Changed: ${change.changed.join(", ")}.` : "Nothing changed.";
        onChanged();
      } else saved.value = "Nothing changed.";
    });
  };
  return (
    <form class="fields settings" onSubmit={submit} key={agent.updated_at}>
      <h2>Settings</h2>
      <label class="wide">
        <span>Description</span>
        <textarea name="description" rows={2} maxLength={4096} defaultValue={agent.description} />
      </label>
      <label class="wide">
        <span>
          Accepts work from <small>one pattern in a line: *, operator, caller:*, agent:coder</small>
        </span>
        <textarea name="accepts_from" rows={2} defaultValue={accepts_from.join("\n")} />
      </label>
      <label class="wide">
        <span>Who answers its questions</span>
        <select name="approvals">
          <option value="any" selected={agent.approvals === "any"}>
            a person, or an approval in advance
          </option>
          <option value="person" selected={agent.approvals === "person"}>
            only a person
          </option>
        </select>
      </label>
      {LIMITS.map(([name, label]) => (
        <label key={name}>
          <span>{label}</span>
          <input
            type="number"
            name={name}
            min={1}
            required={name !== "max_working"}
            defaultValue={limits[name] === null ? "" : String(limits[name])}
          />
        </label>
      ))}
      <Problem error={error} />
      <div class="buttons wide">
        <button type="submit" disabled={isRunning}>
          Save
        </button>
        <span role="status">{saved.value}</span>
      </div>
    </form>
  );
}

function patchOf(agent: Agent, form: FormData): AgentPatch {
  const text = (name: string): string => String(form.get(name) ?? "");
  const description = text("description");
  const accepts = text("accepts_from").split(/\s+/).filter(Boolean);
  const approvals: Approvals = text("approvals") === "person" ? "person" : "any";
  const limits = LIMITS.flatMap(([name]) => {
    const value = text(name) === "" ? null : Number(text(name));
    return value === agent.limits?.[name] ? [] : [[name, value] as const];
  });
  return {
    ...(description !== agent.description && { description }),
    ...(accepts.join(" ") !== agent.accepts_from?.join(" ") && { accepts_from: accepts }),
    ...(approvals !== agent.approvals && { approvals }),
    ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
  };
}
