/**
 * The public cards as they are sent: rendered, signed and compressed once for each change of their agent, because anybody may
 * ask for them. Limit: the least used are dropped beyond a number of bytes.
 */
import { LRUCache } from "lru-cache";
import type { StoredAgent } from "../../../engine/agents/stored-agent.ts";
import type { KeptPage } from "../../http/kept-page.ts";

const MAX_BYTES = 16 * 1024 * 1024;

interface KeptCard {
  /** The agent as it was read: a change is another object. */
  readonly agent: StoredAgent;
  readonly page: KeptPage;
}

export class KeptCards {
  readonly #cards: LRUCache<string, KeptCard>;

  constructor(maxBytes = MAX_BYTES) {
    this.#cards = new LRUCache({
      maxSize: maxBytes,
      maxEntrySize: maxBytes,
      sizeCalculation: ({ page }) => page.maxBytes,
    });
  }

  /** The bytes that are kept. */
  get bytes(): number {
    return this.#cards.calculatedSize;
  }

  /** `form` names one of the agent's cards. */
  async find(agent: StoredAgent, form: string, render: () => Promise<KeptPage>): Promise<KeptPage> {
    const key = `${agent.name} ${form}`;
    const known = this.#cards.get(key);
    if (known?.agent === agent) return known.page;
    const page = await render();
    this.#cards.set(key, { agent, page });
    return page;
  }
}
