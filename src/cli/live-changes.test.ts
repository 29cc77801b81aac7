import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../lib/log/create-log.ts'
import { readSettings, type Settings } from '../server/config/read-settings.ts'
import { SettingsError } from '../server/config/settings-error.ts'
import { LiveChanges, type Upgrade } from './live-changes.ts'

const log = createLog({ level: 'silent' })
const at = (region: string, maxConnections = 0): Settings =>
  readSettings({
    flags: { 'log-level': 'silent', region, 'max-connections': String(maxConnections) },
    env: {},
    cwd: '/srv',
  })

/** A server whose settings on disk are `disk.settings`; `isApplied` resolves when they are in effect. */
function server(upgrade: Upgrade | undefined, isApplied?: () => Promise<void>) {
  const disk = { settings: (): Settings => at('here') }
  const applied: Settings[] = []
  const settings = at('here')
  const apply = async (next: Settings): Promise<readonly string[]> => {
    applied.push(next)
    await isApplied?.()
    return []
  }
  return { disk, applied, changes: new LiveChanges({ settings, read: () => disk.settings(), apply, upgrade, log }) }
}

test('upgrades run one after the other, each with the settings on disk at that time', async () => {
  const gates: PromiseWithResolvers<void>[] = []
  const begun: string[] = []
  const { disk, changes } = server(async ({ region }) => {
    begun.push(region)
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    await gate.promise
    return { from: '1', to: region }
  })
  const first = changes.upgrade()
  const second = changes.upgrade()
  await new Promise(setImmediate)
  assert.deepEqual(begun, ['here'])
  disk.settings = () => at('there')
  gates[0]?.resolve()
  assert.deepEqual(await first, { type: 'upgraded', from: '1', to: 'here' })
  await new Promise(setImmediate)
  gates[1]?.resolve()
  assert.deepEqual(await second, { type: 'upgraded', from: '1', to: 'there' })
})

test('a reload during an upgrade waits for it', async () => {
  const gate = Promise.withResolvers<void>()
  const { disk, applied, changes } = server(async () => {
    await gate.promise
    return { from: '1', to: '2' }
  })
  const upgrade = changes.upgrade()
  disk.settings = () => at('here', 7)
  const reload = changes.reload()
  await new Promise(setImmediate)
  assert.deepEqual(applied, [])
  gate.resolve()
  await upgrade
  await reload
  assert.deepEqual(
    applied.map(({ maxConnections }) => maxConnections),
    [7],
  )
})

test('a reload during another runs after it; waiting reloads are one, and an upgrade runs last', async () => {
  const gates: PromiseWithResolvers<void>[] = []
  const begun: string[] = []
  const upgrade: Upgrade = async ({ maxConnections }) => {
    begun.push(`upgrade ${maxConnections}`)
    return { from: '1', to: '2' }
  }
  const { disk, applied, changes } = server(upgrade, () => {
    begun.push(`reload ${applied.at(-1)?.maxConnections}`)
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    return gate.promise
  })
  disk.settings = () => at('here', 1)
  const first = changes.reload()
  await new Promise(setImmediate)
  disk.settings = () => at('here', 2)
  const second = changes.reload()
  const last = changes.upgrade()
  const third = changes.reload()
  disk.settings = () => at('here', 3)
  await new Promise(setImmediate)
  assert.deepEqual(begun, ['reload 1'])
  gates[0]?.resolve()
  await first
  await new Promise(setImmediate)
  assert.deepEqual(begun, ['reload 1', 'reload 3'])
  gates[1]?.resolve()
  await Promise.all([second, third, last])
  assert.deepEqual(begun, ['reload 1', 'reload 3', 'upgrade 3'])
})

test('a failed upgrade or faulty settings are reported, and do not block the next change', async () => {
  let isBroken = true
  const { disk, changes } = server(async () => {
    if (isBroken) throw new Error('it did not come up')
    return { from: '1', to: '2' }
  })
  assert.deepEqual(await changes.upgrade(), { type: 'failed', reason: 'it did not come up' })
  disk.settings = () => {
    throw new SettingsError(['one fault', 'another'])
  }
  assert.deepEqual(await changes.upgrade(), { type: 'failed', reason: 'one fault; another' })
  disk.settings = () => at('here')
  isBroken = false
  assert.deepEqual(await changes.upgrade(), { type: 'upgraded', from: '1', to: '2' })
})

test('a server of one process reloads its settings, and reports which need a restart', async () => {
  const { disk, applied, changes } = server(undefined)
  disk.settings = () => at('there', 9)
  const outcome = await changes.upgrade()
  assert.deepEqual(outcome, { type: 'reloaded', needsRestart: ['region'] })
  assert.equal(applied[0]?.maxConnections, 9)
  disk.settings = () => {
    throw new SettingsError(['a fault'])
  }
  assert.deepEqual(await changes.upgrade(), { type: 'failed', reason: 'a fault' })
})
