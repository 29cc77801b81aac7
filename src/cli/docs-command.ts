/** `postern docs`: writes the generated pages of the documentation. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Command } from 'commander'
import { packageFile } from '../lib/files/package-file.ts'
import { sharedRows } from '../model/shared.ts'
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
  { path: 'docs/operate.md', text: operatePage },
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

/** Only the table of what many share is generated. */
function operatePage(): string {
  const text = readFileSync(packageFile('docs/operate.md'), 'utf8')
  return text.replace(
    /(Made from src\/model\/shared\.ts[\s\S]*?\n\|---\|---\|---\|\n)[\s\S]*?(?=\n## )/,
    (_, before: string) => `${before}${sharedRows().join('\n')}\n`,
  )
}
