/** Notes on what was skipped or failed: printed at once, and kept for the report. */
import type { Stages } from './stage/stage.ts'

export class Notes {
  readonly all: string[] = []
  readonly #stages: Stages

  constructor(stages: Stages) {
    this.#stages = stages
  }

  /** Notes that something was skipped. */
  readonly note = (text: string): void => {
    // Failures while everything is being closed do not matter.
    if (this.#stages.isOver) return
    this.all.push(text)
    console.log(`note: ${text}`)
  }

  /** Notes that something failed that should have worked. */
  readonly fail = (text: string): void => {
    this.note(text)
    process.exitCode = 1
  }
}
