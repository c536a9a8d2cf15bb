/** The part of AbortSignal that tells a poll or a stream to stop. A real one costs about 1 kB, and there may be thousands. */
export interface StopSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: AbortListener): void;
  removeEventListener(type: "abort", listener: AbortListener): void;
}

export interface AbortListener {
  handleEvent(): void;
}
