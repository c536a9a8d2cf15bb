import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import type { Delegation, State } from "../../schema/delegation.ts";
import { go, href, hrefOf, hrefWith } from "../app/route.ts";
import { show } from "../data/delegations.ts";
import { mayDelegate, mayRedrive, maySteer } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { Confirm } from "../ui/confirm.tsx";
import { isMissing } from "../ui/or-gone.ts";
import { Problem } from "../ui/problem.tsx";
import { ReasonField, reasonOf } from "../ui/reason-field.tsx";
import { useAction } from "../ui/use-action.ts";
import { useLoaded } from "../ui/use-loaded.ts";
import { ReplyActions } from "./reply-actions.tsx";

interface Props {
  readonly delegation: Delegation;
}

/** The actions that the reader may take on the delegation, by its state. */
const ACTIONS: Readonly<Record<State, ComponentType<Props>>> = {
  submitted: WhileLive,
  working: WhileLive,
  input_required: WhileLive,
  auth_required: WhileLive,
  awaiting_children: WhileLive,
  completed: AfterReply,
  failed: AfterFailure,
  rejected: DelegateAgain,
  canceled: DelegateAgain,
};

export function Actions({ delegation }: Props) {
  const Of = ACTIONS[delegation.state];
  return (
    <div class="buttons actions">
      <Of delegation={delegation} />
    </div>
  );
}

function WhileLive({ delegation }: Props) {
  if (!maySteer(delegation)) return null;
  return (
    <>
      {delegation.interrupt && <ToQuestion id={delegation.interrupt.id} />}
      <Cancel delegation={delegation} />
    </>
  );
}

/** The question is at the end of the conversation, which may be long. */
function ToQuestion({ id }: { readonly id: string }) {
  const show = () => {
    go(hrefWith({ tab: undefined }), { replace: true });
    requestAnimationFrame(() => {
      const question = document.querySelector<HTMLElement>(`.tab [data-question="${CSS.escape(id)}"]`);
      question?.scrollIntoView({ block: "nearest" });
      question?.focus({ preventScroll: true });
    });
  };
  return (
    <button type="button" onClick={show}>
      Go to the question
    </button>
  );
}

function AfterReply({ delegation }: Props) {
  const { id, reply } = delegation;
  return (
    <>
      {reply && <ReplyActions id={id} reply={reply} />}
      <DelegateAgain delegation={delegation} />
    </>
  );
}

function AfterFailure({ delegation }: Props) {
  const isRepeated = delegation.redriven_as !== null;
  return (
    <>
      {isRepeated ? (
        <Repeated delegation={delegation} />
      ) : (
        mayRedrive(delegation) && <TryAgain id={delegation.id} />
      )}
      <DelegateAgain delegation={delegation} />
    </>
  );
}

/** With changes, as new work. */
function DelegateAgain({ delegation: { id } }: Props) {
  if (!mayDelegate.value) return null;
  return (
    <a class="button" href={href("delegate", { again: id })} title="Opens Delegate with the same values">
      Delegate again
    </a>
  );
}

function Cancel({ delegation }: Props) {
  const reason = useSignal("");
  const cancel = async () => {
    const canceled = await session.value?.connection.delegator.cancel(delegation.id, reasonOf(reason));
    if (canceled) show(canceled);
  };
  return (
    <Confirm
      verb="Cancel"
      confirm="Cancel delegation"
      question="Cancel this delegation?"
      help="Cancel: stop this task"
      danger
      onConfirm={cancel}
    >
      <p>
        Its agent is notified at once, and everything delegated under it is canceled, too. This cannot be
        undone.
      </p>
      <ReasonField reason={reason} />
    </Confirm>
  );
}

/** The delegation that repeats it. It may not exist: its redrive was refused, or it was deleted. */
function Repeated({ delegation: { id, redriven_as, delegator } }: Props) {
  const again = redriven_as ?? "";
  const { error } = useLoaded(again, ({ delegator }, signal) => delegator.get(again, { signal }));
  if (isMissing(error)) return mayRedrive({ delegator }) ? <TryAgain id={id} /> : null;
  return (
    <span>
      Repeated as <a href={hrefOf(again)}>…{again.slice(-8)}</a>
    </span>
  );
}

function TryAgain({ id }: { readonly id: string }) {
  const { isRunning, error, run, again } = useAction();
  const redrive = async () => {
    const repeated = await session.value?.connection.delegator.redrive(id);
    if (!repeated) return;
    show(repeated);
    go(hrefOf(repeated.id));
  };
  return (
    <>
      <button
        type="button"
        class="primary"
        title="Runs it again as a new delegation"
        disabled={isRunning}
        onClick={() => void run(redrive)}
      >
        Try again
      </button>
      <Problem error={error} again={again} />
    </>
  );
}
