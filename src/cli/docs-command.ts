/** `postern docs`: writes the generated pages of the documentation. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Command } from 'commander'
import { packageFile } from '../lib/files/package-file.ts'
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
      const file = packageFile(path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text())
      terminal.out(`${path}\n`)
    }
  })
}
