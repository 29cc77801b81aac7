/** Tells a person or a log what happens to an agent. */
import type { AgentEvent } from '../../agent/events.ts'
import type { UpdaterOptions } from '../../agent/update/updater.ts'
import type { Reloaded } from './reload.ts'

export type UpdateResult = Parameters<UpdaterOptions['onDone']>[0]

export interface Display {
  event(event: AgentEvent): void
  /** How an update ended. */
  updated(result: UpdateResult): void
  /** What became of a configuration that was read again. */
  reloaded(outcome: Reloaded): void
  /** Nothing is shown after this. */
  close(): void
  /** Resolves when all is written, or after `limitMs`. */
  shown(limitMs: number): Promise<void>
}
