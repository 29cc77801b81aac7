/** Shows the events of an agent to a person or in a log. */
import type { AgentEvent } from '../../agent/events.ts'
import type { UpdaterOptions } from '../../agent/update/updater.ts'
import type { Reloaded } from './reload.ts'

type UpdateResult = Parameters<UpdaterOptions['onDone']>[0]

export interface Display {
  event(event: AgentEvent): void
  /** Shows how an update ended. */
  updated(result: UpdateResult): void
  /** Shows where the inspector is, or why it is not there. */
  inspecting(inspector: { readonly url: string } | { readonly reason: string }): void
  /** Shows the outcome of a reload. */
  reloaded(outcome: Reloaded): void
  /** Stops showing events. */
  close(): void
  /** Resolves when everything is written, or after `limitMs`. */
  shown(limitMs: number): Promise<void>
}
