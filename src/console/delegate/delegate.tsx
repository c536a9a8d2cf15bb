import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { ErrandApiError } from "../../client/errors.ts";
import { randomKey } from "../../client/random-key.ts";
import { adopt } from "../app/adopt.ts";
import { go, href, route } from "../app/route.ts";
import { show } from "../data/delegations.ts";
import { checkSession, isCurrent, session } from "../session/session.ts";
import { isUncertain, Problem } from "../ui/problem.tsx";
import { sendByCtrlEnter } from "../ui/submit-keys.ts";
import { keptAs } from "../ui/use-kept.ts";
import { type FirstValues, useFirstValues } from "./again.ts";
import { styles } from "./delegate.css";
import {
  DeadlineField,
  type Form,
  KeptParts,
  MoreFields,
  Place,
  PriorityField,
  TargetField,
  TaskField,
} from "./fields.tsx";
import { FileField, lostOf, useFiles } from "./files.tsx";
import { inputOf } from "./input.ts";
import { type FieldProblem, problemOf } from "./problem.ts";
import { forgetUploads, runningUpload } from "./uploads.ts";
import { type Field, partsOf, startValues, type Values, valuesSchema, withAddress } from "./values.ts";

adopt(styles);

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
  const element = useRef<HTMLFormElement>(null);
  const { values, files, start } = useDraft(first);
  const problem = useSignal<FieldProblem | null>(null);
  const isSending = useSignal(false);
  const form: Form = {
    values: values.value,
    problem: problem.value,
    set: (part) => {
      values.value = { ...values.value, sentAs: "", ...part };
      const { field } = problem.value ?? {};
      if (field && Object.hasOwn(part, field)) problem.value = null;
    },
  };
  useLayoutEffect(() => {
    // The agent may be named by the address.
    const place = values.peek().target === "" ? "[name=target]" : "textarea";
    element.current?.querySelector<HTMLElement>(place)?.focus();
  }, []);
  const parts = partsOf(first, values.value);
  const discard = () => {
    values.value = start;
    files.value = [];
    problem.value = null;
  };
  const send = async () => {
    problem.value = problemOfFiles(values.value, files.value);
    const connection = session.peek()?.connection;
    if (problem.value !== null || isSending.value || !connection)
      return focusProblem(element.current, problem.value);
    isSending.value = true;
    // Before it is sent: a reload may lose the answer, and sent again with its key the work is accepted only once.
    const sent: Values = { ...values.value, sentAs: values.value.sentAs || randomKey() };
    values.value = sent;
    const isChanged = () => values.peek() !== sent;
    const sentFiles = files.value;
    const check = () => {
      const isWanted = isCurrent(connection) && sentFiles.every((file) => files.peek().includes(file));
      if (!isWanted) throw new DOMException("", "AbortError");
    };
    let place: Field | null = "files";
    try {
      const [input, options] = await inputOf(sent, sentFiles, parts, connection, check);
      check();
      place = null;
      const made = await connection.delegator.delegate(input, { ...options, idempotencyKey: sent.sentAs });
      if (isCurrent(connection)) show(made);
      // What was changed meanwhile was not sent.
      if (!isChanged()) discard();
      // Who has left the form stays where they are.
      if (element.current) go(href("live", { open: made.id }));
    } catch (error) {
      checkSession(error);
      // Who stops an upload, or removes a file, knows why it is not sent.
      problem.value = isAborted(error) ? null : problemOf(error, place);
      if (isFileGone(error)) forgetUploads(sentFiles);
      if (!isUncertain(error) && !isChanged()) values.value = { ...sent, sentAs: "" };
    }
    isSending.value = false;
    focusProblem(element.current, problem.value);
  };
  const running = isSending.value ? runningUpload(files.value) : undefined;
  return (
    <section aria-labelledby="delegate-title">
      <h1 id="delegate-title">Delegate</h1>
      <form
        class="fields delegate"
        ref={element}
        onKeyDown={sendByCtrlEnter}
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <TargetField form={form} />
        <TaskField form={form} />
        <Place form={form} of="files" isWide>
          <FileField
            files={files.value}
            names={values.value.files}
            onChange={(changed, names) => {
              files.value = changed;
              // Files that a reload lost and that are chosen again change nothing.
              const isSame = names.join("/") === values.value.files.join("/");
              form.set({ files: [...names], ...(isSame && { sentAs: values.value.sentAs }) });
            }}
          />
        </Place>
        <KeptParts form={form} parts={parts} />
        <PriorityField form={form} />
        <DeadlineField form={form} />
        <MoreFields form={form} />
        {problem.value?.field === null && <Problem error={problem.value.error} />}
        <div class="buttons wide">
          <button type="submit" class="primary" title="Ctrl+Enter" disabled={isSending.value}>
            Delegate
          </button>
          {running && (
            <button type="button" onClick={() => forgetUploads([running[0]])}>
              Stop the upload
            </button>
          )}
          {JSON.stringify(values.value) !== JSON.stringify(start) && (
            <button type="button" class="quiet" disabled={isSending.value} onClick={discard}>
              Clear
            </button>
          )}
        </div>
      </form>
    </section>
  );
}

const useValues = keptAs(valuesSchema);

/** What was typed before, also before a reload; files only since it. */
function useDraft(first: FirstValues | null) {
  const { params } = route.value;
  const key = `delegate/${params.get("again") ?? ""}`;
  const start = startValues(params, first);
  const values = useValues(key, start);
  const files = useFiles(key);
  const changed = withAddress(values.peek(), start);
  // Before the form is drawn: later, it would undo what was typed meanwhile.
  useLayoutEffect(() => {
    values.value = changed;
  }, [start.address]);
  return { values, files, start };
}

function problemOfFiles(values: Values, files: readonly File[]): FieldProblem | null {
  const isLost = lostOf(values.files, files).length > 0;
  return isLost ? { field: "files", error: new Error("Choose these files again, or leave them out.") } : null;
}

function focusProblem(form: HTMLFormElement | null, problem: FieldProblem | null): void {
  if (problem?.field) form?.querySelector<HTMLElement>(`[name=${problem.field}]`)?.focus();
}

const isAborted = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";
const isFileGone = (error: unknown): boolean =>
  error instanceof ErrandApiError && error.code === "file_not_found";
