/** The mark of the page: a hand-off. */
export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <path class="logo-shape" d="M16 2 30 16 16 30 2 16Z" />
      <path class="logo-line" d="M9 16h12m-5-5 5 5-5 5" />
    </svg>
  );
}
