import type { Signal } from "@preact/signals";

/** Why somebody cancels; they need not say it. */
export function ReasonField({ reason }: { readonly reason: Signal<string> }) {
  return (
    <label>
      <span>
        Reason <small>optional</small>
      </span>
      <input
        maxLength={1024}
        value={reason.value}
        onInput={({ currentTarget }) => {
          reason.value = currentTarget.value;
        }}
      />
    </label>
  );
}

/** As the broker takes it. */
export const reasonOf = ({ value }: Signal<string>): string | undefined => value.trim() || undefined;
