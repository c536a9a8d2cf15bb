import { useSignal } from "@preact/signals";
import { ErrandApiError } from "../../client/errors.ts";
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import { go, hrefOf, hrefWith } from "../app/route.ts";
import { clearOne, show } from "../data/delegations.ts";
import { mayRedrive, maySteer } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { Confirm } from "../ui/confirm.tsx";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { useLoaded } from "../ui/use-loaded.ts";
import { ReplyActions } from "./reply-actions.tsx";

/** The actions that the reader may take on the delegation in its state. */
export function Actions({ delegation }: { readonly delegation: Delegation }) {
  const isOver = isTerminal(delegation.state);
  const isFailed = delegation.state === "failed";
  const may = { steer: maySteer(delegation), redrive: mayRedrive(delegation) };
  const isAgain = isFailed && delegation.redriven_as !== null;
  const reply = delegation.state === "completed" ? delegation.reply : null;
  return (
    <div class="buttons actions">
      {reply && <ReplyActions id={delegation.id} reply={reply} />}
      {!isOver && may.steer && <Cancel delegation={delegation} />}
      {isAgain ? (
        <Again delegation={delegation} />
      ) : (
        isFailed && may.redrive && <Redrive id={delegation.id} />
      )}
      {isOver && may.redrive && <Erase id={delegation.id} />}
    </div>
  );
}

function Cancel({ delegation }: { readonly delegation: Delegation }) {
  const reason = useSignal("");
  const cancel = async () => {
    const text = reason.value.trim();
    const canceled = await session.value?.connection.delegator.cancel(
      delegation.id,
      text === "" ? undefined : text,
    );
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
      <label>
        <span>
          Reason <small>optional</small>
        </span>
        <input
          maxLength={1024}
          value={reason.value}
          onInput={(event) => {
            reason.value = event.currentTarget.value;
          }}
        />
      </label>
    </Confirm>
  );
}

/** The delegation that repeats it. It may not exist: its redrive was refused, or it was deleted. */
function Again({ delegation: { id, redriven_as, delegator } }: { readonly delegation: Delegation }) {
  const again = redriven_as ?? "";
  const { error } = useLoaded(again, ({ delegator }, signal) => delegator.get(again, { signal }));
  const isMissing = error instanceof ErrandApiError && error.code === "delegation_not_found";
  if (isMissing) return mayRedrive({ delegator }) ? <Redrive id={id} /> : null;
  return (
    <span>
      Tried again as <a href={hrefOf(again)}>…{again.slice(-8)}</a>
    </span>
  );
}

function Redrive({ id }: { readonly id: string }) {
  const { isRunning, error, run } = useAction();
  const redrive = async () => {
    const again = await session.value?.connection.delegator.redrive(id);
    if (!again) return;
    show(again);
    go(hrefOf(again.id));
  };
  return (
    <>
      <button
        type="button"
        title="Redrive: run it again as a new delegation"
        disabled={isRunning}
        onClick={() => void run(redrive)}
      >
        Redrive
      </button>
      <Problem error={error} />
    </>
  );
}

function Erase({ id }: { readonly id: string }) {
  const erase = async () => {
    await session.value?.connection.delegator.delete(id);
    clearOne(id);
    go(hrefWith({ open: undefined, tab: undefined }));
  };
  return (
    <Confirm
      verb="Erase"
      confirm="Erase for everybody"
      question="Erase this delegation?"
      help="Erase: delete everything about it"
      danger
      quiet
      onConfirm={erase}
    >
      <p>Its task, conversation, events and artifacts are deleted for everybody. This cannot be undone.</p>
    </Confirm>
  );
}
