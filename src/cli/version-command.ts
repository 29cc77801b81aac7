/** `postern version`: the versions of Postern and Node, and the platform. */
import { Command } from 'commander'
import { packageVersion } from '../lib/files/package-file.ts'
import type { Terminal } from './terminal.ts'
import { printJson } from './text-table.ts'

export function versionCommand(terminal: Terminal): Command {
  return new Command('version')
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExamples:\n  postern version\n  postern version --json')
    .action(({ json }: { json?: true }) => {
      const version = packageVersion()
      const { version: node, platform, arch } = process
      if (json) printJson(terminal, { version, node, platform, arch })
      else terminal.out(`postern ${version} (Node ${node}, ${platform} ${arch})\n`)
    })
}
