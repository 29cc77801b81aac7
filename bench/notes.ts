/** Notes on what did not go as planned: printed at once, and kept for the report. */
import type { Stages } from './stage/stage.ts'

export class Notes {
  readonly all: string[] = []
  readonly #stages: Stages

  constructor(stages: Stages) {
    this.#stages = stages
  }

  /** Something was left out. */
  readonly note = (text: string): void => {
    // Failures while everything is being closed do not matter.
    if (this.#stages.isOver) return
    this.all.push(text)
    console.log(`note: ${text}`)
  }

  /** Something that should have worked did not. */
  readonly fail = (text: string): void => {
    this.note(text)
    process.exitCode = 1
  }
}
