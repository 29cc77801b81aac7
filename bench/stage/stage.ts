/** A stage: programs and their own temporary folder, which is removed with them. All stages can be closed at once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Programs } from './programs.ts'

export class Stage {
  readonly programs = new Programs()
  readonly folder: string
  readonly #undo: (() => void)[] = []

  constructor(folder: string) {
    this.folder = folder
    this.onClose(() => rmSync(folder, { recursive: true, force: true }))
  }

  /** Writes a file that only the programs of this stage use; resolves with its path. */
  async write(name: string, text: string): Promise<string> {
    const path = join(this.folder, name)
    await writeFile(path, text, { mode: 0o600 })
    return path
  }

  /** Registers a function that runs when the stage is closed, the last one first. */
  onClose(undo: () => void): void {
    this.#undo.push(undo)
  }

  async close(): Promise<void> {
    await this.programs.end()
    this.#clear()
  }

  /** Closes it synchronously, for a process that is about to exit. */
  drop(): void {
    this.programs.kill()
    this.#clear()
  }

  #clear(): void {
    for (const undo of this.#undo.splice(0).reverse()) undo()
  }
}

export class Stages {
  readonly #open = new Set<Stage>()
  #isOver = false

  /** Whether everything was closed; no stage can be opened afterwards. */
  get isOver(): boolean {
    return this.#isOver
  }

  open(name: string): Stage {
    if (this.#isOver) throw new Error('cannot open stages: the bench is ending')
    const folder = mkdtempSync(join(tmpdir(), `postern-bench-${name.replaceAll(/\W+/g, '-')}-`))
    const stage = new Stage(folder)
    this.#open.add(stage)
    stage.onClose(() => this.#open.delete(stage))
    return stage
  }

  async closeAll(): Promise<void> {
    this.#isOver = true
    const all = [...this.#open]
    // Programs end first, because some write to the folder of another stage.
    await Promise.all(all.map((stage) => stage.programs.end()))
    for (const stage of all) await stage.close()
  }

  dropAll(): void {
    this.#isOver = true
    for (const stage of this.#open) stage.drop()
  }
}
