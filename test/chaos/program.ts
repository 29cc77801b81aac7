/** A copy of this program whose version can change while it runs, and that can be broken like a bad release. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Owner } from '../support/upstream.ts'

export interface Program {
  /** Its `bin/postern.js`. */
  readonly launcher: string
  /** Its settings file, which is valid until it is broken. */
  readonly config: string
  /** Gives the copy on disk a new version. */
  release(version: string): void
  /** Replaces a text, which must be present. */
  edit(file: string, from: string, to: string): void
  /** Breaks the copy on disk; returns a function that repairs it. */
  breakIt(how: Breakage): () => void
}

interface Change {
  readonly file: string
  readonly change: (text: string) => string
}

const broken = "throw new Error('broken on purpose')"

/** What can be wrong with a new version, ordered by how early the fault shows. */
export const breakages = {
  'faulty settings': { file: 'postern.yml', change: () => 'log_level: shouting\n' },
  'code that cannot be parsed': { file: 'src/server/supervisor/worker-child.ts', change: (text) => `${text}\n}}}\n` },
  'a worker that throws when it is loaded': {
    file: 'src/server/compose/worker-process.ts',
    change: (text) => `${text}\n${broken}\n`,
  },
  'a control process that throws when it has opened the store': {
    file: 'src/server/compose/control-process.ts',
    change: (text) => text.replace('await control.readLists()', broken),
  },
  'a worker that throws when it starts': {
    file: 'src/server/compose/worker-process.ts',
    change: (text) => text.replace('await plane.letVisitorsIn()', broken),
  },
} satisfies Record<string, Change>

export type Breakage = keyof typeof breakages

export function copyProgram(owner: Owner): Program {
  const folder = mkdtempSync(join(tmpdir(), 'chaos-program-'))
  owner.after(() => rmSync(folder, { recursive: true, force: true }))
  const root = fileURLToPath(new URL('../..', import.meta.url))
  for (const part of ['src', 'bin', 'package.json']) cpSync(join(root, part), join(folder, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const config = join(folder, 'postern.yml')
  writeFileSync(config, 'log_level: info\n')
  /** Returns a function that reverts the change. */
  const rewrite = (file: string, change: (text: string) => string): (() => void) => {
    const path = join(folder, file)
    const whole = readFileSync(path, 'utf8')
    const other = change(whole)
    if (other === whole) throw new Error(`${file} is not as it was thought to be; it cannot be changed this way`)
    writeFileSync(path, other)
    return () => writeFileSync(path, whole)
  }
  return {
    launcher: join(folder, 'bin', 'postern.js'),
    config,
    release(version) {
      const file = join(folder, 'package.json')
      const description = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown> // our own file
      writeFileSync(file, JSON.stringify({ ...description, version }))
    },
    edit: (file, from, to) => void rewrite(file, (text) => text.replace(from, to)),
    breakIt(how) {
      const { file, change } = breakages[how]
      return rewrite(file, change)
    },
  }
}
