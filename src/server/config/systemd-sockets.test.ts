import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { takeHanded } from './systemd-sockets.ts'

const ours = 4711
const take = (env: Record<string, string | undefined>) => takeHanded(env, (pid) => pid === ours)

test('sockets have their names in the order of their descriptors, and `tcp` may have several', () => {
  const env = { LISTEN_PID: '4711', LISTEN_FDS: '4', LISTEN_FDNAMES: 'https:tcp:agent:tcp', OTHER: 'stays' }
  assert.deepEqual(take(env), {
    sockets: [
      { name: 'https', fd: 3 },
      { name: 'tcp', fd: 4 },
      { name: 'agent', fd: 5 },
      { name: 'tcp', fd: 6 },
    ],
    otherPid: undefined,
  })
  assert.deepEqual(env, { OTHER: 'stays' }, 'children do not get the variables')
})

test('sockets of another process are ignored, even malformed ones, and not passed on to children', () => {
  const env = { LISTEN_PID: '1', LISTEN_FDS: 'many', LISTEN_FDNAMES: 'api' }
  assert.deepEqual(take(env), { sockets: [], otherPid: 1 })
  assert.deepEqual(env, {})
})

const none: readonly Record<string, string>[] = [{}, { LISTEN_PID: '4711', LISTEN_FDS: '0' }, { LISTEN_FDS: '2' }]
for (const env of none) {
  test(`there are none in ${JSON.stringify(env)}`, () => assert.deepEqual(take({ ...env }).sockets, []))
}

const wrong: readonly [what: string, env: Record<string, string>, says: RegExp][] = [
  ['no number', { LISTEN_FDS: '-1', LISTEN_FDNAMES: 'api' }, /`LISTEN_FDS` must be a number/],
  ['no names', { LISTEN_FDS: '1' }, /has no listener of that name; set `FileDescriptorName=`.*agent/],
  ['too few names', { LISTEN_FDS: '2', LISTEN_FDNAMES: 'api' }, /must name each of the 2 sockets/],
  ['too many names', { LISTEN_FDS: '1', LISTEN_FDNAMES: 'api:http' }, /must name each of the 1 sockets/],
  ['a name like one', { LISTEN_FDS: '1', LISTEN_FDNAMES: 'agents' }, /`agents` \(descriptor 3\).*did you mean `agent`/],
  ['the name of a unit', { LISTEN_FDS: '1', LISTEN_FDNAMES: 'postern-proxy.socket' }, /`FileDescriptorName=`/],
  ['a name twice', { LISTEN_FDS: '2', LISTEN_FDNAMES: 'http:http' }, /two sockets are named `http`.*\[::\]/],
]
for (const [what, env, says] of wrong) {
  test(`refuses ${what}`, () => {
    assert.throws(() => take({ LISTEN_PID: '4711', ...env }), { name: 'SettingsError', message: says })
  })
}

test('the socket units that come with the server have names that it knows', () => {
  const folder = fileURLToPath(new URL('../../../deploy/systemd/', import.meta.url))
  const units = globSync('*.socket', { cwd: folder }).map((file) => readFileSync(`${folder}${file}`, 'utf8'))
  const setting = (unit: string, name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1]
  const names = units.map((unit) => setting(unit, 'FileDescriptorName') ?? '')
  const env = { LISTEN_PID: '4711', LISTEN_FDS: String(names.length), LISTEN_FDNAMES: names.join(':') }
  assert.deepEqual(
    take(env)
      .sockets.map(({ name }) => name)
      .sort(),
    ['agent', 'api', 'http', 'https', 'ssh'],
  )
  for (const unit of units) assert.equal(setting(unit, 'Service'), 'postern.service')
})
