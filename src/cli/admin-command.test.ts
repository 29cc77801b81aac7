import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Admin, adminCommand } from './admin-command.ts'
import { testTerminal } from './testing/test-terminal.ts'

async function admin(args: readonly string[], given: Partial<Admin> = {}) {
  const calls: unknown[] = []
  const terminal = testTerminal()
  const fake: Admin = {
    createUser: async (user) => {
      calls.push(user)
      return { id: 'usr_1', ...user, active: true, created_at: '2026-01-01T00:00:00Z' }
    },
    createKey: async (key) => {
      calls.push(key)
      return { id: 'ak_1', token: 't_1' }
    },
    listUsers: async () => [
      { id: 'usr_1', name: 'Ada', role: 'admin', active: true, created_at: '2026-01-01T00:00:00Z' },
    ],
    setUserActive: async (id, active) => {
      calls.push([id, active])
      return { id, name: 'Ada', role: 'member', active, created_at: '2026-01-01T00:00:00Z' }
    },
    deleteUser: async (id) => void calls.push(['deleted', id]),
    liftRestrictions: async (parts) => {
      calls.push(parts)
      return [...(parts ?? [])]
    },
    rotateKey: async () => 3,
    close: async () => void calls.push('closed'),
    ...given,
  }
  const command = adminCommand(terminal, async ({ databaseUrl }) => {
    calls.push(databaseUrl)
    return fake
  })
  const error: unknown = await command.parseAsync([...args], { from: 'user' }).catch((thrown: unknown) => thrown)
  return { calls, out: terminal.printed.out, error }
}

const database = ['--database-url', 'sqlite:/tmp/x.db']

test('create-user creates a member by default, in the named database', async () => {
  const { calls, out } = await admin(['create-user', '--name', 'Ada', ...database])
  assert.deepEqual(calls, ['sqlite:/tmp/x.db', { name: 'Ada', role: 'member' }, 'closed'])
  assert.equal(out, 'id\tusr_1\nname\tAda\nrole\tmember\nactive\ttrue\ncreated_at\t2026-01-01T00:00:00Z\n')
})

test('create-key prints the token once, also as JSON', async () => {
  const { calls, out } = await admin(['create-key', '--owner', 'usr_1', '--json', ...database])
  assert.deepEqual(calls[1], { ownerId: 'usr_1', description: '' })
  assert.deepEqual(JSON.parse(out), { id: 'ak_1', token: 't_1' })
})

test('list-users prints one line per user', async () => {
  assert.equal((await admin(['list-users', ...database])).out, 'usr_1\tAda\tadmin\ttrue\t2026-01-01T00:00:00Z\n')
})

test('the database is closed when a command fails, and the error is one line', async () => {
  const { calls, error } = await admin(['create-key', '--owner', 'usr_9', ...database], {
    createKey: async () => {
      throw new Error('no user or bot has the id usr_9')
    },
  })
  assert.equal((error as Error).message, 'no user or bot has the id usr_9')
  assert.equal(calls.at(-1), 'closed')
})

test('an empty name is refused', async () => {
  const { calls, error } = await admin(['create-user', '--name', ' ', ...database])
  assert.match((error as Error).message, /--name must not be empty/)
  assert.deepEqual(calls, [])
})

test('lift-ip-restriction lifts that of the API by default', async () => {
  const usual = await admin(['lift-ip-restriction', ...database])
  assert.deepEqual(usual.calls[1], ['api'])
  assert.equal(usual.out, 'No longer enforced: the IP restriction of type api.\n')
  const one = await admin(['lift-ip-restriction', '--type', 'agent', '--json', ...database])
  assert.deepEqual(JSON.parse(one.out), { lifted: true, types: ['agent'] })
  const all = await admin(['lift-ip-restriction', '--type', 'all', ...database])
  assert.deepEqual(all.calls[1], ['api', 'dashboard', 'agent', 'endpoints'])
})

test('deactivate-user, activate-user and delete-user name the user by id', async () => {
  const id = ['--id', 'usr_1', ...database]
  const inactive = await admin(['deactivate-user', '--json', ...id])
  assert.deepEqual(inactive.calls[1], ['usr_1', false])
  assert.equal(JSON.parse(inactive.out).active, false)
  assert.deepEqual((await admin(['activate-user', ...id])).calls[1], ['usr_1', true])
  const deleted = await admin(['delete-user', ...id])
  assert.deepEqual(deleted.calls[1], ['deleted', 'usr_1'])
  assert.equal(deleted.out, 'The user usr_1 is deleted, with its keys and credentials.\n')
})
