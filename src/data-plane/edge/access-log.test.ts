import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AccessLog } from './access-log.ts'

const peer = { ip: '192.0.2.1', port: 5, serverIp: '192.0.2.2', serverPort: 20001, startedAt: 1000 }

const request = {
  peer,
  startedAt: 1000,
  durationMs: 1.26,
  request: { requestId: 'r1' },
  scheme: 'https',
  version: '2',
  method: 'GET',
  host: 'a.example.com',
  path: '/x',
  sentTarget: '/x?y=1',
  ownerId: undefined,
  edge: 'edghts_1',
  route: 'edghtsrt_1',
  target: 'tn_1',
  isReused: true,
  passedMs: 0,
  sentMs: 0,
  answeredMs: 1,
  status: 200,
  isFromUpstream: true,
  fault: undefined,
  isCut: false,
  bytesIn: 0,
  bytesOut: 12,
  found: new Map([['ip_policy.decision', 'allow']]),
  kept: undefined,
  replay: undefined,
} as const

function logged(isOn = true) {
  let text = ''
  const log = new AccessLog({ write: (lines) => (text += lines), isOn: () => isOn, now: () => 1500 })
  return {
    log,
    lines: () => {
      log.flush()
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    },
  }
}

test('a request is one line, with the decisions of modules', () => {
  const { log, lines } = logged()
  log.request(request)
  assert.deepEqual(lines(), [
    {
      level: 'info',
      time: '1970-01-01T00:00:01.500Z',
      msg: 'request',
      ip: '192.0.2.1',
      method: 'GET',
      host: 'a.example.com',
      path: '/x',
      status: 200,
      ms: 1.3,
      bytes_in: 0,
      bytes_out: 12,
      http: '2',
      scheme: 'https',
      edge: 'edghts_1',
      route: 'edghtsrt_1',
      target: 'tn_1',
      request: 'r1',
      decided: { 'ip_policy.decision': 'allow' },
    },
  ])
})

test('a connection is one line, with its duration and outcome', () => {
  const { log, lines } = logged()
  const record = { edge: 'edgtcp_1', peer, serverName: undefined, bytesIn: 1, bytesOut: 2, target: undefined }
  log.connection({ ...record, fault: 'IP_REFUSED' })
  log.connection({ ...record, target: 'tn_1', fault: 'CUT' })
  const [refused, cut] = lines()
  assert.equal(refused?.fault, 'ERR_IP_REFUSED')
  assert.equal(refused?.ms, 500)
  assert.deepEqual([cut?.fault, cut?.cut, cut?.target], [undefined, true, 'tn_1'])
})

test('visitors cannot forge a line', () => {
  const { log, lines } = logged()
  log.request({ ...request, path: '/"}\n{"msg":"forged"}', host: '\u2028' })
  const all = lines()
  assert.equal(all.length, 1)
  assert.equal(all[0]?.path, '/"}\n{"msg":"forged"}')
})

test('nothing is written while the log is off', () => {
  const { log, lines } = logged(false)
  log.request(request)
  assert.deepEqual(lines(), [])
})
