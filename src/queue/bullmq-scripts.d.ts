/** BullMQ's scripts have types only beside its ES modules, which Node cannot load. */
declare module "bullmq/dist/cjs/scripts/*" {
  interface BullScript {
    readonly name: string;
    readonly content: string;
    readonly keys: number;
  }
  export const addDelayedJob: BullScript;
  export const addPrioritizedJob: BullScript;
  export const moveToActive: BullScript;
}
