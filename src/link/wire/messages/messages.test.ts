import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Secret } from '../../../lib/secrets/secret.ts'
import { WireError } from '../wire-error.ts'
import {
  type AuthAnswer,
  type AuthRequest,
  buildAuth,
  buildAuthAnswer,
  buildAuthRefusal,
  chooseVersion,
  parseAuth,
  parseAuthAnswer,
} from './auth.ts'
import { type BindMessage, buildBind, buildBindAnswer, parseBind, parseBindAnswer } from './bind.ts'
import { echoOptions, option, requestedName } from './bind-options.ts'
import { buildStopTunnel, buildUpdate, parseStopTunnel, parseUpdate } from './command-messages.ts'
import { errorText, parseAnswer, readErrorText } from './error-text.ts'
import { buildLabelAnswer, parseLabelAnswer, parseLabelRequest, parsePatch, parseUnbind } from './tunnel-messages.ts'

function ok<T>(result: T | WireError): T {
  if (result instanceof WireError) assert.fail(result)
  return result
}

const rustAuth = {
  Version: ['3', '2'],
  ClientId: '',
  Extra: {
    OS: 'linux',
    Arch: 'x86_64',
    AuthToken: 'good',
    Version: '1.7.0',
    Hostname: '',
    UserAgent: 'ngrok-javascript/1.7.0 ngrok-rust/0.18.0',
    Metadata: '',
    Cookie: '',
    HeartbeatInterval: 10_000_000_000,
    HeartbeatTolerance: 15_000_000_000,
    UpdateUnsupportedError: 'no callback',
    StopUnsupportedError: '',
    RestartUnsupportedError: null,
    ProxyType: '',
    MutualTLS: false,
    ServiceRun: false,
    ConfigVersion: '',
    CustomInterface: false,
    CustomCAs: false,
    ClientType: 'ngrok-javascript',
  },
}

describe('authentication', () => {
  test('is read as agents in Rust send it', () => {
    const auth = ok(parseAuth(rustAuth))
    assert.equal(auth.authtoken.reveal(), 'good')
    assert.deepEqual(auth.versions, ['3', '2'])
    assert.deepEqual([auth.heartbeatIntervalMs, auth.heartbeatToleranceMs], [10_000, 15_000])
    assert.deepEqual([auth.updateUnsupported, auth.stopUnsupported, auth.restartUnsupported], ['no callback', '', null])
    assert.equal(auth.windowBytes, 0)
  })

  test('is read as old agents in Go send it: in another case, with absent and unknown fields and nulls', () => {
    const auth = ok(
      parseAuth({ Version: ['2'], ClientId: 'x', Extra: { Authtoken: 'a', Fingerprint: null, Cookie: null, New: [] } }),
    )
    assert.deepEqual([auth.clientId, auth.authtoken.reveal(), auth.cookie.reveal(), auth.os], ['x', 'a', '', ''])
    assert.deepEqual([auth.heartbeatIntervalMs, auth.heartbeatToleranceMs], [10_000, 15_000])
    assert.equal(auth.stopUnsupported, null)
  })

  test('does not show its secrets', () => {
    assert.doesNotMatch(JSON.stringify(ok(parseAuth(rustAuth))), /good/)
  })

  test('what one end builds the other reads', () => {
    const request: AuthRequest = {
      ...ok(parseAuth(rustAuth)),
      windowBytes: 1_000_000,
      leg: 2,
      heldPlanes: ['w1'],
      standbyOf: { clientId: 'ts_1', cookie: new Secret('c') },
    }
    assert.deepEqual(ok(parseAuth(buildAuth(request))), request)
    const answer: AuthAnswer = {
      version: '3',
      clientId: 'ts_1',
      cookie: new Secret('c'),
      serverVersion: '1.0.0',
      region: 'local',
      accountName: 'a',
      planName: 'p',
      banner: 'b',
      sessionDurationS: 5,
      sessionId: 'ts_1',
      windowBytes: 1_000_000,
      planeId: 'w2',
      planeCount: 4,
      nodeId: 'nd_1',
      nodeAddresses: ['a.example.com:7443'],
      isStandby: true,
    }
    assert.deepEqual(ok(parseAuthAnswer(buildAuthAnswer(answer))), { error: '', answer })
    assert.equal(ok(parseAuthAnswer(buildAuthRefusal('no'))).error, 'no')
  })

  test('does not mention larger windows to agents that are not ours', () => {
    const answer = { ...ok(parseAuthAnswer({})).answer, windowBytes: 0 }
    assert.doesNotMatch(JSON.stringify([buildAuthAnswer(answer), buildAuth(ok(parseAuth(rustAuth)))]), /StreamWindow/)
  })

  test('does not mention data planes when there is only one, nor legs on a first connection', () => {
    const answer = { ...ok(parseAuthAnswer({})).answer }
    assert.deepEqual([answer.planeId, answer.planeCount], ['', 1])
    const request = ok(parseAuth(rustAuth))
    assert.equal(request.heldPlanes, undefined)
    assert.doesNotMatch(JSON.stringify([buildAuthAnswer(answer), buildAuth(request)]), /Plane|FurtherLeg/)
  })

  test('a refusal has the two strings that agents in Rust require', () => {
    assert.deepEqual(Object.keys(buildAuthRefusal('no')).slice(0, 3), ['Version', 'ClientId', 'Error'])
  })

  for (const [offered, chosen] of [
    [['3', '2'], '3'],
    [['2'], '2'],
    [['9', '2', '3'], '2'],
    [['1'], undefined],
    [[], undefined],
  ] as const) {
    test(`from the versions [${offered.join()}] ${chosen ?? 'none'} is chosen`, () =>
      assert.equal(chooseVersion(offered), chosen))
  }

  const wrong: Record<string, { message: Record<string, unknown>; field: string }> = {
    'a token that is a number': { message: { Extra: { Authtoken: 5 } }, field: 'Extra.Authtoken' },
    'an interval below zero': { message: { Extra: { HeartbeatInterval: -1 } }, field: 'Extra.HeartbeatInterval' },
    'a list that is a string': { message: { Version: '3' }, field: 'Version' },
    'a list that is too long': { message: { Version: Array(1001).fill('3') }, field: 'Version' },
    'an object that is a list': { message: { Extra: [] }, field: 'Extra' },
  }
  for (const [name, { message, field }] of Object.entries(wrong)) {
    test(`${name} is refused by name`, () => {
      const result = parseAuth(message)
      assert.ok(result instanceof WireError)
      assert.equal(result.code, 'message_invalid')
      assert.match(result.message, new RegExp(`^\`${field}\` must be `))
    })
  }
})

describe('a bind', () => {
  const request: BindMessage = {
    id: 'tn_1',
    proto: 'https',
    forwardsTo: 'localhost:80',
    forwardsProto: 'http1',
    opts: { Domain: 'a.example.com' },
    token: new Secret('t'),
    metadata: 'm',
    bindings: ['public'],
    poolingEnabled: true,
    name: 'n',
    description: 'd',
  }

  test('what one end builds the other reads', () => {
    assert.deepEqual(ok(parseBind(buildBind(request))), request)
    const answer = {
      id: 'tn_1',
      url: 'https://a',
      proto: 'https',
      opts: { Hostname: 'a' },
      token: new Secret('t'),
      tunnelId: 'tn_1',
    }
    assert.deepEqual(ok(parseBindAnswer(buildBindAnswer(answer))), { error: '', answer })
  })

  test('is read with the nulls that agents in Go send for absent values', () => {
    const bind = ok(parseBind({ Id: '', Proto: 'tcp', Opts: { Addr: '' }, Extra: { Token: '', Bindings: null } }))
    assert.deepEqual([bind.bindings, bind.poolingEnabled, bind.token.reveal()], [[], false, ''])
  })

  for (const [proto, opts, expected] of [
    ['https', { URL: 'https://u', Domain: 'd' }, { field: 'URL', value: 'https://u' }],
    ['https', { Domain: 'd', Hostname: 'h' }, { field: 'Domain', value: 'd' }],
    ['tls', { Domain: '', Hostname: 'h', Subdomain: 's' }, { field: 'Hostname', value: 'h' }],
    ['http', { subdomain: 's' }, { field: 'Subdomain', value: 's' }],
    ['tcp', { Addr: 'h:1', Hostname: 'x' }, { field: 'Addr', value: 'h:1' }],
    ['tcp', { Addr: '' }, undefined],
    ['https', { Domain: null }, undefined],
  ] as const) {
    test(`${proto} with ${JSON.stringify(opts)} asks for ${expected?.value ?? 'any name'}`, () =>
      assert.deepEqual(requestedName(proto, opts), expected))
  }

  test('the echo keeps what was sent, in its spelling, and adds what agents in Rust require', () => {
    const echo = echoOptions(
      'https',
      { LocalUrlScheme: null, domain: 'a', TLSTermination: {} },
      { host: 'a.example.com' },
    )
    assert.deepEqual(echo, {
      LocalUrlScheme: null,
      domain: 'a.example.com',
      TLSTermination: {},
      Hostname: 'a.example.com',
      Auth: '',
      Subdomain: '',
      HostHeaderRewrite: false,
      ProxyProto: 0,
    })
    assert.equal(option(echo, 'localURLscheme'), null)
  })

  test('the echo of a TCP bind names host and port', () => {
    assert.deepEqual(echoOptions('tcp', { Addr: '' }, { host: 'h', port: 5 }), { Addr: 'h:5', ProxyProto: 0 })
  })
})

describe('smaller messages', () => {
  test('labels are read into a map without a prototype', () => {
    const { labels } = ok(parseLabelRequest({ Labels: { constructor: 'x', edge: 'e' } }))
    assert.deepEqual(Object.entries(labels), [
      ['constructor', 'x'],
      ['edge', 'e'],
    ])
    assert.equal(Object.getPrototypeOf(labels), null)
  })

  test('labels that are not strings are refused', () => {
    assert.ok(parseLabelRequest({ Labels: { a: 1 } }) instanceof WireError)
  })

  test('the other messages are read as they are built', () => {
    assert.deepEqual(ok(parseLabelAnswer(buildLabelAnswer('tn_1'))), { id: 'tn_1', error: '' })
    assert.deepEqual(ok(parseUnbind({ Id: 'tn_1', Extra: null })), { id: 'tn_1' })
    const update = { version: '', permitMajorVersion: true }
    assert.deepEqual(ok(parseUpdate(buildUpdate(update))), update)
    const stop = { id: 'tn_1', message: 'm', errorCode: '' }
    assert.deepEqual(ok(parseStopTunnel(buildStopTunnel(stop))), stop)
    assert.equal(ok(parseStopTunnel({ Id: 'a', ErrorCode: null })).errorCode, '')
    assert.equal(ok(parseAnswer({})).error, '')
  })

  test('a patch of a tunnel distinguishes absent fields from empty ones', () => {
    assert.deepEqual(ok(parsePatch({ TunnelId: 'tn_1', Name: '', PoolingEnabled: false })), {
      tunnelId: 'tn_1',
      name: '',
      description: null,
      metadata: null,
      poolingEnabled: false,
      trafficPolicy: null,
    })
  })

  test('an error text has its code on a separate line, and both can be read back', () => {
    const text = errorText('the token\nis wrong', 'ERR_NGROK_105')
    assert.equal(text, 'the token\nis wrong\n\nERR_NGROK_105\n')
    assert.deepEqual(readErrorText(text), { message: 'the token\nis wrong', code: 'ERR_NGROK_105' })
    assert.deepEqual(readErrorText('plain'), { message: 'plain', code: '' })
  })
})
