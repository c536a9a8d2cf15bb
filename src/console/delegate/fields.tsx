/** The fields of a new delegation, each with what is wrong with it. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Part } from "../../schema/a2a.ts";
import { adopt } from "../app/adopt.ts";
import { href } from "../app/route.ts";
import { agentOf, agents } from "../data/agents.ts";
import { PresenceOf } from "../live/agent-row.tsx";
import { styles } from "../ui/amounts.css";
import { Problem } from "../ui/problem.tsx";
import { Said } from "../ui/said.tsx";
import { count } from "../ui/words.ts";
import type { FieldProblem } from "./problem.ts";
import type { Field, Values } from "./values.ts";

adopt(styles);

export interface Form {
  readonly values: Values;
  readonly problem: FieldProblem | null;
  /** Changes some; what was wrong with them is corrected. */
  readonly set: (part: Partial<Values>) => void;
}

interface PlaceProps {
  readonly form: Form;
  readonly of: Field;
  readonly isWide?: boolean;
  readonly children: ComponentChildren;
}

/** The problem is outside of the label: it is no part of the field's name. */
export function Place({ form: { problem }, of, isWide = false, children }: PlaceProps) {
  return (
    <div class={isWide ? "wide" : ""}>
      {children}
      {problem?.field === of && <Problem error={problem.error} />}
    </div>
  );
}

type TextName = Exclude<Field, "priority" | "files">;

/** What every field of text has. */
const textOf = ({ values, problem, set }: Form, name: TextName) => ({
  name,
  value: values[name],
  "aria-invalid": problem?.field === name,
  onInput: ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) =>
    set({ [name]: currentTarget.value }),
});

interface Props {
  readonly form: Form;
}

export function TargetField({ form }: Props) {
  const agent = agentOf(form.values.target);
  return (
    <Place form={form} of="target" isWide>
      <label>
        <span>Agent</span>
        <input
          {...textOf(form, "target")}
          required
          list="targets"
          autocomplete="off"
          placeholder={`for example ${agents.value?.[0]?.name ?? "scout"}`}
        />
      </label>
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
    </Place>
  );
}

export function TaskField({ form }: Props) {
  return (
    <Place form={form} of="task" isWide>
      <label>
        <span>Task</span>
        <textarea {...textOf(form, "task")} rows={5} required placeholder="What is to be done" />
      </label>
    </Place>
  );
}

export function PriorityField({ form }: Props) {
  return (
    <Place form={form} of="priority">
      <label>
        <span>
          Priority <small>higher goes first</small>
        </span>
        <select
          name="priority"
          value={form.values.priority}
          onChange={({ currentTarget }) => form.set({ priority: currentTarget.value })}
        >
          {[9, 8, 7, 6, 5, 4, 3, 2, 1, 0].map((one) => (
            <option key={one} value={one}>
              {one === 9 ? "9, first" : one === 5 ? "5, as usual" : one === 0 ? "0, last" : one}
            </option>
          ))}
        </select>
      </label>
    </Place>
  );
}

export function DeadlineField({ form }: Props) {
  return (
    <Place form={form} of="deadline">
      <label>
        <span>
          Deadline <small>optional</small>
        </span>
        <input type="datetime-local" {...textOf(form, "deadline")} />
      </label>
    </Place>
  );
}

function ParentField({ form }: Props) {
  return (
    <Place form={form} of="parent" isWide>
      <label>
        <span>
          A part of <small>optional: the id of a live delegation</small>
        </span>
        <input {...textOf(form, "parent")} autocomplete="off" placeholder="dlg_…" />
      </label>
    </Place>
  );
}

function ApproveField({ form }: Props) {
  return (
    <Place form={form} of="approve" isWide>
      <label>
        <span>
          Approve in advance{" "}
          <small>optional: names of actions, or all; the agent asks before any other</small>
        </span>
        <input {...textOf(form, "approve")} autocomplete="off" placeholder="for example deploy, fs.*" />
      </label>
    </Place>
  );
}

function BudgetField({ form }: Props) {
  const { values, set } = form;
  const part = (name: "tokens" | "cost" | "currency" | "minutes" | "attempts") => ({
    ...textOf(form, name),
    "aria-label": `Budget: ${name}`,
    placeholder: name,
  });
  return (
    <Place form={form} of="tokens" isWide>
      <label>
        <span>
          Budget <small>optional, of it and all under it; a cost needs its currency</small>
        </span>
        <span class="amounts has-time">
          <input {...part("tokens")} type="number" min={1} />
          <input {...part("cost")} type="number" min={0} step="any" />
          <input
            {...part("currency")}
            required={values.cost !== ""}
            pattern="\s*[A-Za-z]{3}\s*"
            title="Three letters, for example USD"
            placeholder="USD"
          />
          <input {...part("minutes")} type="number" min={0} step="any" />
          <input {...part("attempts")} type="number" min={1} />
        </span>
      </label>
      <label class="check">
        <input
          type="checkbox"
          name="asks"
          checked={values.asks}
          onChange={({ currentTarget }) => set({ asks: currentTarget.checked })}
        />
        <span>Ask for more when it is used up, instead of failing</span>
      </label>
    </Place>
  );
}

const MORE = ["parent", "approve", "tokens", "cost", "currency", "minutes", "attempts"] as const;

/** What few need. They stay once they were shown: somebody may be typing. */
export function MoreFields({ form }: Props) {
  const { values, problem } = form;
  const isNeeded = values.asks || MORE.some((name) => values[name] !== "" || problem?.field === name);
  const isOpen = useSignal(isNeeded);
  useEffect(() => {
    if (isNeeded) isOpen.value = true;
  }, [isNeeded]);
  if (isOpen.value || isNeeded) {
    return (
      <>
        <ParentField form={form} />
        <ApproveField form={form} />
        <BudgetField form={form} />
      </>
    );
  }
  return (
    <button
      type="button"
      class="quiet wide"
      onClick={() => {
        isOpen.value = true;
      }}
    >
      More options
    </button>
  );
}

/** What is sent again of the task of another delegation. */
export function KeptParts({ form, parts }: Props & { readonly parts: readonly Part[] }) {
  if (parts.length === 0) return null;
  return (
    <p class="wide kept-parts">
      <span>
        With {count(parts.length, "part")} of the first task: <Said>{parts.map(partName).join(", ")}</Said>
      </span>
      <button type="button" onClick={() => form.set({ isBare: true })}>
        Leave out
      </button>
    </p>
  );
}

/** What a part is called in the form. */
const partName = ({ filename, url, data }: Part): string =>
  filename ?? url ?? (data === undefined ? "a file" : "data");
