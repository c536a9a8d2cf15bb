import { useSignal } from "@preact/signals";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { sendByCtrlEnter } from "../ui/submit-keys.ts";
import { useAction } from "../ui/use-action.ts";

/** A message to the agent while it works. */
export function FollowUp({ id, onSent }: { readonly id: string; readonly onSent: () => void }) {
  const text = useSignal("");
  const { isRunning, error, run } = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      await session.value?.connection.delegator.message(id, text.value);
      text.value = "";
      onSent();
    });
  };
  return (
    <form class="follow-up" onSubmit={submit}>
      <textarea
        rows={2}
        aria-label="A follow-up for the agent"
        placeholder="Say more to the agent"
        required
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
        onKeyDown={sendByCtrlEnter}
      />
      <button type="submit" title="Ctrl+Enter" disabled={isRunning || text.value.trim() === ""}>
        Send
      </button>
      <Problem error={error} />
    </form>
  );
}
