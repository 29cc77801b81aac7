/** `postern admin`: manages users and keys directly in the database, for when no API key is at hand. */
import { Command, Option } from 'commander'
import { countOf } from '../lib/text/plural.ts'
import { type RestrictedPart, restrictedParts } from '../model/restricted-part.ts'
import type { openAdmin } from '../server/compose/open-admin.ts'
import type { Settings } from '../server/config/read-settings.ts'
import { Failure, misuse } from './command-failure.ts'
import { group } from './group.ts'
import { addDatabaseFlags, settingsOf } from './settings-flags.ts'
import { startFault } from './start-fault.ts'
import type { Terminal } from './terminal.ts'
import { printFields, printJson, printTable } from './text-table.ts'

/** The database operations that these commands need. */
export type Admin = Awaited<ReturnType<typeof openAdmin>>
type Role = Parameters<Admin['createUser']>[0]['role']

type OpenAdmin = (settings: Settings, how: { readonly migrates: boolean }) => Promise<Admin>

interface Work {
  readonly terminal: Terminal
  readonly open: OpenAdmin
}

interface AsJson {
  readonly json?: true
}

const examples = `
Examples:
  postern admin create-user --name "Ada Lovelace" --role admin
  postern admin create-key --owner usr_… --description "key for Ada"
  postern admin list-users
  postern admin rotate-key`

/** `open` is for tests; by default the server's own implementation is loaded on use. */
export function adminCommand(terminal: Terminal, open: OpenAdmin = openServerAdmin): Command {
  const work = { terminal, open }
  return group(new Command('admin'))
    .addHelpText('after', examples)
    .addCommand(createUser(work))
    .addCommand(createKey(work))
    .addCommand(listUsers(work))
    .addCommand(setActive(work, 'deactivate-user', false))
    .addCommand(setActive(work, 'activate-user', true))
    .addCommand(deleteUser(work))
    .addCommand(liftIpRestriction(work))
    .addCommand(rotateKey(work))
}

async function openServerAdmin(...given: Parameters<OpenAdmin>): Promise<Admin> {
  return (await import('../server/compose/open-admin.ts')).openAdmin(...given)
}

function createUser(work: Work): Command {
  const command = databaseCommand('create-user', 'add a user', '--name "Ada Lovelace" --role admin')
    .requiredOption('--name <name>', 'name of the user')
    .addOption(new Option('--role <role>', 'what the user may do').choices(['admin', 'member']).default('member'))
  return command.action(({ name, role, json }: { name: string; role: Role } & AsJson) => {
    if (name.trim() === '') throw misuse('--name must not be empty')
    return using(work, command, async (admin) => {
      const user = await admin.createUser({ name, role })
      show(work.terminal, user, json)
    })
  })
}

function createKey(work: Work): Command {
  const about = 'create an API key for a user or bot; its token is shown only once'
  const command = databaseCommand('create-key', about, '--owner usr_… --description "key for Ada"')
    .requiredOption('--owner <id>', 'id of the user or bot that owns the key')
    .option('--description <text>', 'what the key is for', '')
  return command.action(({ owner, description, json }: { owner: string; description: string } & AsJson) =>
    using(work, command, async (admin) => {
      const key = await admin.createKey({ ownerId: owner, description })
      show(work.terminal, key, json)
    }),
  )
}

function listUsers(work: Work): Command {
  const command = databaseCommand('list-users', 'list all users', '--json')
  return command.action(({ json }: AsJson) =>
    using(work, command, async (admin) => {
      const users = await admin.listUsers()
      if (json) printJson(work.terminal, users)
      else printTable(work.terminal, ['id', 'name', 'role', 'active', 'created_at'], users)
    }),
  )
}

function setActive(work: Work, name: string, active: boolean): Command {
  const about = active
    ? 'enable the keys and credentials of a user again'
    : 'disable the keys and credentials of a user, and end its sessions'
  const command = databaseCommand(name, about, '--id usr_…').requiredOption('--id <id>', 'id of the user')
  return command.action(({ id, json }: { id: string } & AsJson) =>
    using(work, command, async (admin) => show(work.terminal, await admin.setUserActive(id, active), json)),
  )
}

function deleteUser(work: Work): Command {
  const about = 'delete a user with its keys and credentials'
  const command = databaseCommand('delete-user', about, '--id usr_…').requiredOption('--id <id>', 'id of the user')
  return command.action(({ id, json }: { id: string } & AsJson) =>
    using(work, command, async (admin) => {
      await admin.deleteUser(id)
      if (json) printJson(work.terminal, { deleted: id })
      else work.terminal.out(`The user ${id} is deleted, with its keys and credentials.\n`)
    }),
  )
}

function liftIpRestriction(work: Work): Command {
  const about = 'stop enforcing an IP restriction, for when it locks everybody out'
  const command = databaseCommand('lift-ip-restriction', about, '--type agent').addOption(
    new Option('--type <type>', 'which restriction').choices([...restrictedParts, 'all']).default(restrictedParts[0]),
  )
  return command.action(({ type, json }: { type: RestrictedPart | 'all' } & AsJson) =>
    using(work, command, async (admin) => {
      const types = await admin.liftRestrictions(type === 'all' ? restrictedParts : [type])
      if (json) printJson(work.terminal, { lifted: types.length > 0, types })
      else if (types.length === 0) work.terminal.out('No such IP restriction was enforced.\n')
      else work.terminal.out(`No longer enforced: the IP restriction of type ${types.join(', ')}.\n`)
    }),
  )
}

function rotateKey(work: Work): Command {
  const about = 'replace the key file and re-encrypt all secrets; stop every server first'
  const command = databaseCommand('rotate-key', about, '--data-dir /var/lib/postern', rotationNote)
  return command.action(({ json }: AsJson) =>
    using(work, command, async (admin) => {
      const sealed = await admin.rotateKey()
      if (json) printJson(work.terminal, { sealed })
      else
        work.terminal.out(
          `The key file was replaced, and ${countOf(sealed, 'row')} ${sealed === 1 ? 'was' : 'were'} re-encrypted.\n`,
        )
    }),
  )
}

const rotationNote = `
The old key file is gone afterwards. Back up the new one, and copy it to every other server that uses the database.
`

/** `example` is what stands behind the name of the command, and `note` comes before it in the help. */
function databaseCommand(name: string, about: string, example: string, note = ''): Command {
  const command = new Command(name).description(about).option('--json', 'print as JSON')
  command.addHelpText('after', `${note}\nExample:\n  postern admin ${name} ${example}`)
  return addDatabaseFlags(command)
}

async function using({ terminal, open }: Work, command: Command, job: (admin: Admin) => Promise<void>): Promise<void> {
  const settings = settingsOf(command, terminal)
  const failed = (cause: unknown): never => {
    throw new Failure(startFault(cause, settings), { cause })
  }
  const { migrate } = command.opts<{ migrate?: true }>()
  const admin = await open(settings, { migrates: migrate === true }).catch(failed)
  try {
    await job(admin).catch(failed)
  } finally {
    await admin.close()
  }
}

function show(terminal: Terminal, fields: Readonly<Record<string, unknown>>, json: boolean | undefined): void {
  if (json) printJson(terminal, fields)
  else printFields(terminal, fields)
}
