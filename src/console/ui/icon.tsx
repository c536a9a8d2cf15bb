/** Drawn signs on buttons; the words for them are the button's label. */
const PATHS = {
  widen: "M9.5 2.5h4v4m0-4-4.6 4.6m-2.4 6.4h-4v-4m0 4 4.6-4.6",
  narrow: "M13.5 6.5h-4v-4m0 4 4.6-4.6M2.5 9.5h4v4m0-4-4.6 4.6",
  close: "m3.5 3.5 9 9m0-9-9 9",
} as const;

export function Icon({ of }: { readonly of: keyof typeof PATHS }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[of]} />
    </svg>
  );
}
