/** `postern version`: the versions of Postern and Node, and the platform. */
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import type { Terminal } from './terminal.ts'
import { printJson } from './text-table.ts'

export function versionCommand(terminal: Terminal): Command {
  return new Command('version')
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExamples:\n  postern version\n  postern version --json')
    .action(({ json }: { json?: true }) => {
      const version = posternVersion()
      const { version: node, platform, arch } = process
      if (json) printJson(terminal, { version, node, platform, arch })
      else terminal.out(`postern ${version} (Node ${node}, ${platform} ${arch})\n`)
    })
}

/** The version of this package; `package.json` is at the same relative path from `src/cli` and from `dist/cli`. */
export function posternVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return version
}
