/** `postern backup`: the database and its key in one file, consistent while the server runs. */
import { resolve } from 'node:path'
import { Command } from 'commander'
import { packageVersion } from '../lib/files/package-file.ts'
import { countOf } from '../lib/text/plural.ts'
import { printable } from '../lib/text/printable.ts'
import type { BackUp } from '../server/compose/backup-database.ts'
import type { Settings } from '../server/config/read-settings.ts'
import { type Ask, processAsk } from './agent/ask.ts'
import { writeWhole } from './backup-file.ts'
import { Failure, misuse } from './command-failure.ts'
import { describeBackup } from './describe-backup.ts'
import { newPassphrase, type PassphraseOptions } from './passphrase.ts'
import { addDatabaseFlags, settingsOf } from './settings-flags.ts'
import { startFault } from './start-fault.ts'
import type { Terminal } from './terminal.ts'

const examples = `
The file is encrypted with a passphrase from POSTERN_BACKUP_PASSPHRASE, --passphrase-file or a prompt. Without the
passphrase the backup cannot be restored. With --plain the file holds every secret in plain text.

Examples:
  postern backup postern.backup
  postern backup --passphrase-file /etc/postern/backup.pass "/backups/postern-$(date +%F).backup"
  postern backup --data-dir /var/lib/postern --plain postern.backup`

interface BackupOptions extends PassphraseOptions {
  readonly plain?: true
  readonly force?: true
  readonly migrate?: true
}

/** `ask` is for tests. */
export function backupCommand(terminal: Terminal, ask: Ask = processAsk()): Command {
  const command = new Command('backup')
    .argument('<file>', 'file to write')
    .option('--passphrase-file <path>', 'file that holds the passphrase')
    .option('--plain', 'do not encrypt the file: it then holds every secret in plain text')
    .option('--force', 'replace an existing file')
  addDatabaseFlags(command)
  return command.addHelpText('after', examples).action(async (file: string, options: BackupOptions) => {
    if (options.plain && options.passphraseFile !== undefined) {
      throw misuse('--plain takes no passphrase; leave out --passphrase-file, or --plain')
    }
    const settings = settingsOf(command, terminal)
    const passphrase = options.plain ? undefined : await newPassphrase(options, terminal, ask)
    const path = resolve(terminal.cwd, file)
    const how = { passphrase, force: options.force === true, migrates: options.migrate === true }
    const { bytes, contents } = await write(settings, path, how, terminal)
    terminal.out(`${printable(path)}: ${countOf(bytes, 'byte')}\n${describeBackup(contents)}`)
    if (options.plain) terminal.err('The file is not encrypted: whoever reads it has every secret of the server.\n')
  })
}

async function write(
  settings: Settings,
  path: string,
  { force, ...how }: { passphrase: string | undefined; force: boolean; migrates: boolean },
  terminal: Terminal,
) {
  const { backUp } = await import('../server/compose/backup-database.ts')
  let bytes = 0
  const making: BackUp = {
    version: packageVersion(),
    ...how,
    take: async (pieces) => {
      bytes = await writeWhole(path, pieces, { force })
    },
    onProgress: (rows) => {
      if (terminal.isTTY) terminal.err(`\r${countOf(rows, 'row')} `)
    },
  }
  const contents = await backUp(settings, making).catch((cause: unknown) => {
    throw new Failure(`no backup was made: ${startFault(cause, settings)}`, { cause })
  })
  if (terminal.isTTY) terminal.err('\r\x1b[K')
  return { bytes, contents }
}
