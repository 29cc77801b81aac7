/** `postern restore`: fills an empty database, of either kind, from a backup. */
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Command } from 'commander'
import { printable } from '../lib/text/printable.ts'
import type { Settings } from '../server/config/read-settings.ts'
import { type Ask, processAsk } from './agent/ask.ts'
import { Failure } from './command-failure.ts'
import { describeBackup } from './describe-backup.ts'
import { knownPassphrase, type PassphraseOptions } from './passphrase.ts'
import { addSettingsFlags, settingsOf } from './settings-flags.ts'
import { startFault } from './start-fault.ts'
import type { Terminal } from './terminal.ts'

const examples = `
The whole file is read and checked before anything is written. The database and the key file must not exist yet; a
PostgreSQL database must be empty. A backup of SQLite can be restored to PostgreSQL, and the other way around.

Examples:
  postern restore postern.backup --data-dir /var/lib/postern
  postern restore postern.backup --database-url postgres://postern@db.example.com/postern
  postern restore postern.backup --check`

interface RestoreOptions extends PassphraseOptions {
  readonly check?: true
}

/** `ask` is for tests. */
export function restoreCommand(terminal: Terminal, ask: Ask = processAsk()): Command {
  const command = new Command('restore')
    .argument('<file>', 'file that `postern backup` wrote')
    .option('--passphrase-file <path>', 'file that holds the passphrase')
    .option('--check', 'only show what the file holds and whether it is intact')
  addSettingsFlags(command, { only: ['data-dir', 'database-url', 'key-file'] })
  return command.addHelpText('after', examples).action(async (name: string, options: RestoreOptions) => {
    const settings = settingsOf(command, terminal)
    const path = resolve(terminal.cwd, name)
    const { asksForPassphrase, inspect, restore } = await import('../server/compose/backup-database.ts')
    const unusable = (cause: unknown): never => {
      throw new Failure(`${printable(path)} cannot be restored: ${startFault(cause, settings)}`, { cause })
    }
    const isSealed = await beginning(path).then(asksForPassphrase).catch(unusable)
    const passphrase = isSealed ? await knownPassphrase(options, terminal, ask) : undefined
    const backup = { file: () => createReadStream(path), passphrase }
    const contents = await inspect(backup).catch(unusable)
    terminal.out(describeBackup(contents))
    if (options.check) return
    await restore(settings, backup, contents.key).catch((cause: unknown) => {
      throw new Failure(`nothing was restored: ${startFault(cause, settings)}`, { cause })
    })
    terminal.out(`Restored into ${databaseOf(settings)}; the key is in ${printable(settings.keyFile)}\n`)
  })
}

/** The beginning of a file, enough to tell what it is. */
async function beginning(path: string): Promise<Buffer> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64), 0, 64, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** The database, without the password that its URL may contain. */
function databaseOf({ databaseUrl }: Settings): string {
  return databaseUrl.startsWith('sqlite:') ? printable(databaseUrl.slice('sqlite:'.length)) : 'the PostgreSQL database'
}
