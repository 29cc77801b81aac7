/** `postern docs`: writes the generated pages of the documentation. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { configReference } from '../server/config/reference.ts'
import { errorReference } from './error-reference.ts'
import type { Terminal } from './terminal.ts'

interface GeneratedPage {
  /** Relative to the root of the repository. */
  readonly path: string
  readonly text: () => string
}

export const generatedPages: readonly GeneratedPage[] = [
  { path: 'docs/config.md', text: configReference },
  { path: 'docs/errors.md', text: errorReference },
]

export function docsCommand(terminal: Terminal): Command {
  return new Command('docs').action(() => {
    for (const { path, text } of generatedPages) {
      const file = pageFile(path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text())
      terminal.out(`${path}\n`)
    }
  })
}

/** The path of a page on disk. */
export function pageFile(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url))
}
