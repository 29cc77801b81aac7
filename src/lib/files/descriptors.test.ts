import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { createLog } from '../log/create-log.ts'
import { Descriptors } from './descriptors.ts'

function watched() {
  const lines: string[] = []
  const log = createLog({ format: 'json', destination: { write: (line) => lines.push(line) } })
  const state = { limit: '256', error: undefined as string | undefined }
  const limits = async () =>
    `Limit   Soft Limit  Hard Limit  Units\nMax open files            ${state.limit}            512    files\n`
  const tryOpen = async () => {
    if (state.error) throw Object.assign(new Error(state.error), { code: state.error })
  }
  return {
    lines,
    state,
    descriptors: new Descriptors({ log, system: { limits, tryOpen, close: async () => {} } }),
  }
}

function accepted(fd: number) {
  const socket = {
    _handle: { fd },
    isClosed: false,
    destroy() {
      socket.isClosed = true
    },
  }
  return socket as unknown as Socket & { isClosed: boolean }
}

test('visitors leave descriptors for agents, agents for the API, all for metrics; the others are closed', async () => {
  const { descriptors } = watched()
  await descriptors.look()
  const rows = [
    ['visitors', 191, true],
    ['visitors', 192, false],
    ['agents', 223, true],
    ['agents', 224, false],
    ['api', 231, true],
    ['api', 232, false],
    ['metrics', 247, true],
    ['metrics', 248, false],
  ] as const
  for (const [caller, fd, isAdmitted] of rows) {
    const socket = accepted(fd)
    assert.deepEqual(
      [descriptors.admits(socket, caller), socket.isClosed],
      [isAdmitted, !isAdmitted],
      `${caller} ${fd}`,
    )
  }
  assert.equal(descriptors.refused, 4)
})

test('one log line a minute has the number of closed connections', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { descriptors, lines } = watched()
  await descriptors.look()
  for (let i = 0; i < 5; i++) descriptors.admits(accepted(200), 'visitors')
  t.mock.timers.tick(60_000)
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)).map(({ level, connections }) => [level, connections]),
    [
      ['error', 1],
      ['error', 4],
    ],
  )
})

test('a limit raised at run time applies from the next check on', async () => {
  const { descriptors, state } = watched()
  await descriptors.look()
  assert.equal(descriptors.admits(accepted(200), 'visitors'), false)
  state.limit = '1024'
  await descriptors.look()
  assert.equal(descriptors.admits(accepted(200), 'visitors'), true)
})

test('a process that cannot open a file logs it', async () => {
  const { descriptors, lines, state } = watched()
  state.error = 'EMFILE'
  await descriptors.look()
  assert.match(lines[0] ?? '', /"code":"EMFILE".*too few file descriptors/)
})

test('without a known limit every connection is admitted', async () => {
  const { descriptors, state } = watched()
  state.limit = 'unlimited'
  await descriptors.look()
  assert.equal(descriptors.admits(accepted(100_000), 'visitors'), true)
})
