/** Makes key pairs; RSA keys on another thread, one at a time per caller, since they take long. */

import { makeSshKeyPair, type SshKeyChoice, type SshKeyPair } from '../../lib/ssh-keys/ssh-key-pair.ts'
import { type WorkerLane, type WorkerPool, WorkRefused, WorkTooHeavy } from '../../lib/threads/worker-pool.ts'
import { Refusal } from '../../model/errors.ts'
import { shared } from '../../model/shared.ts'

/**
 * Time limit, in milliseconds. A key of 4096 bits takes about a second, but many times that with bad luck on a busy machine.
 */
const KEY_LIMIT_MS = 30_000

/** How long a caller that asks for too many keys is told to wait, in seconds. */
const BUSY_SECONDS = 5

export class KeyMaker {
  readonly #lane: WorkerLane

  constructor(threads: WorkerPool) {
    this.#lane = threads.lane('key', { limitMs: KEY_LIMIT_MS, waiting: shared.keyMaking.most })
  }

  /** `owner` is charged for the work. */
  async make(owner: string, choice: SshKeyChoice): Promise<SshKeyPair> {
    if (choice.type !== 'rsa') return makeSshKeyPair(choice)
    try {
      return (await this.#lane.run(owner, choice)) as SshKeyPair // made by `makeSshKeyPair`
    } catch (cause) {
      if (cause instanceof WorkRefused) {
        const headers = { 'retry-after': String(BUSY_SECONDS) }
        throw new Refusal('CHECKS_BUSY', 'Too many keys are being made for this caller; wait as `Retry-After` says.', {
          headers,
          cause,
        })
      }
      if (cause instanceof WorkTooHeavy) {
        throw new Refusal('SERVER_BUSY', 'The key could not be made in time; try again, or choose a smaller one.', {
          cause,
        })
      }
      throw cause
    }
  }
}
