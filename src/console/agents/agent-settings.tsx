import { useSignal } from "@preact/signals";
import type { Agent, AgentPatch, Approvals } from "../../schema/agent.ts";
import { isOperator, isSelf } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { BudgetFields, budgetsPatch } from "./budget-fields.tsx";
import { inUnits, toSeconds, UNIT_NAMES } from "./duration.ts";
import { VotesFields, votesPatch } from "./votes-fields.tsx";

interface Props {
  readonly agent: Agent;
  readonly onChanged: () => void;
}

/** `seconds`: the most of a duration; undefined: a number. `none`: what an empty field means. `note`: what else decides. */
const LIMITS = [
  { name: "max_attempts", label: "Attempts at most" },
  { name: "max_working", label: "In progress at once", none: "any number" },
  { name: "max_waiting", label: "In the queue at most" },
  {
    name: "lease_seconds",
    label: "A silent worker loses its work after",
    note: "unless it asked for another time",
    seconds: 3600,
  },
  { name: "interrupt_ttl_seconds", label: "A question stays open for", seconds: 31_536_000 },
] as const;

/** Changes exactly the settings that were edited; the others stay as they are. */
export function AgentSettings({ agent, onChanged }: Props) {
  const { isRunning, error, run, again } = useAction();
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
        <span>
          Approval in advance <small>it does not choose who answers: its delegator always may</small>
        </span>
        <select name="approvals">
          <option value="any" selected={agent.approvals === "any"}>
            accepted
          </option>
          <option value="person" selected={agent.approvals === "person"}>
            refused: each question waits for an answer
          </option>
        </select>
      </label>
      <label class="wide">
        <span>
          Turns in the queue{" "}
          <small>of a delegator where the others get one, one in a line: caller:ci 3</small>
        </span>
        <textarea name="delegator_weights" rows={2} defaultValue={weightLines(agent)} />
      </label>
      <label class="wide">
        <span>
          Of one conversation <small>the work of one delegator with one context_id</small>
        </span>
        <select name="serial_by">
          <option value="" selected={agent.serial_by === null}>
            any number at once
          </option>
          <option value="context" selected={agent.serial_by === "context"}>
            one at a time, in order
          </option>
        </select>
      </label>
      <label>
        <span>
          Its last worker is preferred for <small>seconds after its reply</small>
        </span>
        <input
          type="number"
          name="sticky_seconds"
          min={0.001}
          max={3600}
          step="any"
          placeholder="not at all"
          defaultValue={agent.sticky_seconds === null ? "" : String(agent.sticky_seconds)}
        />
      </label>
      <label>
        <span>
          A priority counts as one higher after <small>seconds in the queue</small>
        </span>
        <input
          type="number"
          name="priority_ageing_seconds"
          min={1}
          max={2_592_000}
          placeholder="never"
          defaultValue={agent.priority_ageing_seconds === null ? "" : String(agent.priority_ageing_seconds)}
        />
      </label>
      {isOperator.value && <BudgetFields budgets={agent.budgets} />}
      {isOperator.value && <VotesFields votes={agent.votes} />}
      {LIMITS.map((limit) =>
        "seconds" in limit ? (
          <DurationField key={limit.name} {...limit} value={limits[limit.name]} />
        ) : (
          <label key={limit.name}>
            <span>{limit.label}</span>
            <input
              type="number"
              name={limit.name}
              min={1}
              required={!("none" in limit)}
              placeholder={"none" in limit ? limit.none : undefined}
              defaultValue={limits[limit.name] === null ? "" : String(limits[limit.name])}
            />
          </label>
        ),
      )}
      <Problem error={error} again={again} />
      <div class="buttons wide">
        <button type="submit" disabled={isRunning}>
          Save
        </button>
        <span role="status">{saved.value}</span>
      </div>
    </form>
  );
}

interface DurationProps {
  readonly name: string;
  readonly label: string;
  readonly note?: string;
  /** In seconds. */
  readonly value: number;
  readonly seconds: number;
}

const unitOf = (name: string): string => `${name}_unit`;

/** A number and its unit. */
function DurationField({ name, label, note, value, seconds }: DurationProps) {
  const start = inUnits(value);
  const unit = useSignal<string>(start.unit);
  return (
    <label>
      <span>
        {label} {note && <small>{note}</small>}
      </span>
      <span class="duration">
        <input
          type="number"
          name={name}
          min={1}
          max={seconds / toSeconds(1, unit.value)}
          step="any"
          required
          defaultValue={String(start.number)}
        />
        <select
          name={unitOf(name)}
          aria-label={`${label}: unit`}
          value={unit.value}
          onChange={({ currentTarget }) => {
            unit.value = currentTarget.value;
          }}
        >
          {UNIT_NAMES.filter((one) => toSeconds(1, one) <= seconds).map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </span>
    </label>
  );
}

const weightLines = ({ delegator_weights = {} }: Agent): string =>
  Object.entries(delegator_weights)
    .map(([who, weight]) => `${who} ${weight}`)
    .join("\n");

/** The lines as weights; those that are left out are removed. The broker refuses what is no weight. */
function weightsOf(text: string, before: Agent["delegator_weights"] = {}): AgentPatch["delegator_weights"] {
  const removed = Object.keys(before).map((who) => [who, null] as const);
  const lines = text.split("\n").map((line) => line.trim().split(/[\s=]+/));
  const given = lines.flatMap(([who = "", weight = ""]) =>
    who === "" ? [] : [[who, Number(weight) || 0] as const],
  );
  return Object.fromEntries([...removed, ...given]);
}

function patchOf(agent: Agent, form: FormData): AgentPatch {
  const text = (name: string): string => String(form.get(name) ?? "");
  const description = text("description");
  const accepts = text("accepts_from").split(/\s+/).filter(Boolean);
  const approvals: Approvals = text("approvals") === "person" ? "person" : "any";
  const weights = text("delegator_weights");
  const serial_by = text("serial_by") === "context" ? "context" : null;
  const ageing = text("priority_ageing_seconds") === "" ? null : Number(text("priority_ageing_seconds"));
  const sticky_seconds = text("sticky_seconds") === "" ? null : Number(text("sticky_seconds"));
  const limits = LIMITS.flatMap(({ name }) => {
    const number = Number(text(name));
    const value = text(name) === "" ? null : toSeconds(number, text(unitOf(name)));
    return value === agent.limits?.[name] ? [] : [[name, value] as const];
  });
  return {
    ...(description !== agent.description && { description }),
    ...(accepts.join(" ") !== agent.accepts_from?.join(" ") && { accepts_from: accepts }),
    ...(approvals !== agent.approvals && { approvals }),
    ...(weights.trim() !== weightLines(agent) && {
      delegator_weights: weightsOf(weights, agent.delegator_weights),
    }),
    ...(ageing !== agent.priority_ageing_seconds && { priority_ageing_seconds: ageing }),
    ...(serial_by !== agent.serial_by && { serial_by }),
    ...(sticky_seconds !== agent.sticky_seconds && { sticky_seconds }),
    ...(isOperator.value && { ...budgetsPatch(agent.budgets, text), ...votesPatch(agent.votes, text) }),
    ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
  };
}
