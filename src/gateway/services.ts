/** The running parts of a gateway: started in order, stopped in reverse, also when a start fails half-way. */

export interface Service {
  readonly name: string;
  readonly start: () => unknown;
  /** Also called when the start failed half-way. */
  readonly stop: () => unknown;
}

export class Services {
  readonly #services: readonly Service[];
  readonly #onError: (error: unknown, name: string) => void;
  /** Services whose start was called, the last one first. */
  readonly #begun: Service[] = [];
  #stopped: Promise<void> | undefined;

  constructor(services: readonly Service[], onError: (error: unknown, name: string) => void) {
    this.#services = services;
    this.#onError = onError;
  }

  async start(): Promise<void> {
    try {
      for (const service of this.#services) {
        this.#begun.unshift(service);
        await service.start();
      }
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Stops all services, once; if one fails to stop, the others are still stopped. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    for (const { name, stop } of this.#begun) {
      try {
        await stop();
      } catch (error) {
        this.#onError(error, name);
      }
    }
  }
}
