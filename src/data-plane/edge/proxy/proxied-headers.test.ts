import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import type { RequestContext } from '../../../modules/phases.ts'
import { forwardedHeaders, stripRequest, stripResponse, stripTrailers } from './proxied-headers.ts'

type Pairs = [string, string][]

const hop: Pairs = [
  ['Connection', 'close, X-Private , keep-alive'],
  ['connection', 'x-other'],
  ['X-Private', '1'],
  ['X-Other', '2'],
  ['Keep-Alive', 'timeout=5'],
  ['Proxy-Authorization', 'Basic eA=='],
  ['Proxy-Connection', 'keep-alive'],
  ['TE', 'trailers'],
  ['Trailer', 'x'],
  ['Transfer-Encoding', 'chunked'],
  ['Content-Length', '5'],
  ['Upgrade', 'websocket'],
  ['HTTP2-Settings', 'AAMAAABkAAQCAAAAAAIAAAAA'],
]

const ours: Pairs = [
  ['Postern-Auth-User-Email', 'admin@example.com'],
  ['postern-mtls-subject-cn', 'admin'],
  ['POSTERN-ERROR-CODE', 'ERR_X'],
  ['postern.auth-user-id', '1'],
  ["postern'auth", '1'],
]

const kept: Pairs = [
  ['Accept', '*/*'],
  ['Posterns', 'a name with the same start'],
  ['Postern2', 'and another'],
  ['X-Postern-Auth-User-Id', 'and one with the same end'],
  ['Cookie', 'a=1'],
]

describe('from a request', () => {
  test('headers of the connection, our own and names with `_` are removed', () => {
    const underscored: Pairs = [
      ['postern_auth_user_id', '1'],
      ['X_Forwarded_For', '1.1.1.1'],
    ]
    const headers = HeaderList.of([...hop, ...ours, ...underscored, ...kept, ['Expect', '100-continue']])
    stripRequest(headers, {})
    assert.deepEqual([...headers], kept)
  })

  const aboutVisit: Pairs = [
    ['X-Forwarded-Host', 'evil.example'],
    ['x-forwarded-proto', 'http'],
    ['X-Forwarded-Port', '1'],
    ['X-Forwarded-Server', 'evil.example'],
    ['Forwarded', 'for=6.6.6.6;host=evil.example'],
    ['X-Real-IP', '6.6.6.6'],
    ['X-Forwarded-Ssl', 'on'],
    ['X-Forwarded-Scheme', 'https'],
    ['X-Forwarded-Prefix', '/admin'],
    ['X-Original-Host', 'evil.example'],
    ['X-Original-URL', '/admin'],
    ['X-Rewrite-URL', '/admin'],
  ]

  test('what a visitor says about its own visit is removed, but for the addresses before ours', () => {
    const headers = HeaderList.of([...aboutVisit, ['X-Forwarded-For', '6.6.6.6'], ...kept])
    stripRequest(headers, {})
    assert.deepEqual([...headers], [['X-Forwarded-For', '6.6.6.6'], ...kept])
  })

  test('what a trusted hop says about the visit is kept', () => {
    const headers = HeaderList.of([...hop, ...ours, ...aboutVisit])
    stripRequest(headers, { isThroughHop: true })
    assert.deepEqual([...headers], aboutVisit)
  })
})

describe('of cookies', () => {
  const pass = (...sent: string[]): Pairs => {
    const headers = HeaderList.of([
      ['Accept', '*/*'],
      ...sent.map((value): [string, string] => ['cookie', value]),
      ['X-Last', '1'],
    ])
    stripRequest(headers, {})
    const peer = { ip: '2.2.2.2', port: 1, serverIp: '3.3.3.3', serverPort: 443, startedAt: 0 }
    const ctx = { headers, authority: 'a.example', peer, scheme: 'https' }
    const forwarded = [...forwardedHeaders(ctx as unknown as RequestContext)] // the parts of it that are read
    return forwarded.filter(([name]) => !/^(?:host|x-forwarded-.*)$/i.test(name))
  }
  const cases: [what: string, sent: string[], left: string[]][] = [
    ['the page over https', ['__Host-postern-page=v1:x:y'], []],
    ['the page over http', ['a=1; postern-page-7400=v1:x:y; b=2'], ['a=1; b=2']],
    ['logins and attempts', ['__Host-postern.session=x; __Host-postern.nonce.0a=y;a=1'], ['a=1']],
    ['names that look like ours', ['a=1;postern_x=2; __Secure-postern-page=3;__Host-postern:z=4 ;b=5'], ['a=1;b=5']],
    [
      'ours in several headers',
      ['a=1', '__Host-postern-page=x', ' b = "2;3"; postern.session=y', 'c=4'],
      ['a=1', 'b = "2;3"', 'c=4'],
    ],
    ['ours that comes twice', ['postern-page-1=x; postern-page-1=y'], []],
    ['the first of two', ['postern-page-1=x;  a="1"; b=\u00a0'], ['a="1"; b=\u00a0']],
  ]
  for (const [what, sent, left] of cases) {
    test(`without ${what}, the others keep their bytes and their place`, () => {
      assert.deepEqual(pass(...sent), [
        ['Accept', '*/*'],
        ...left.map((value): [string, string] => ['cookie', value]),
        ['X-Last', '1'],
      ])
    })
  }

  test('others are unchanged, also where a value or the end of a name is like ours', () => {
    const others = [
      'a=1;  b="postern.session=2" ;;c',
      'xpostern.session=1; posterns=2; Postern.session=3; a=postern-page-1=2',
    ]
    assert.deepEqual(
      pass(...others).flatMap(([name, value]) => (name === 'cookie' ? value : [])),
      others,
    )
  })

  test('rules see those of logins, but never those of the page', () => {
    const headers = HeaderList.of([['Cookie', '__Host-postern-page=x; __Host-postern.session=y; postern-page-80=z']])
    stripRequest(headers, {})
    assert.equal(headers.get('cookie'), '__Host-postern.session=y')
  })
})

test('whether a visitor describes its visit as a proxy would is seen on the way', () => {
  const describes = (pairs: Pairs, isThroughHop = false) =>
    stripRequest(HeaderList.of([...kept, ...pairs]), { isThroughHop })
  for (const name of ['X-Forwarded-For', 'X-Real-IP', 'Forwarded']) assert.equal(describes([[name, '6.6.6.6']]), true)
  assert.equal(describes([['X-Forwarded-For', '6.6.6.6']], true), false)
  assert.equal(describes(hop), false)
})

describe('from a response', () => {
  test('headers of the connection and our own are removed', () => {
    const headers = HeaderList.of([
      ...hop,
      ...ours,
      ...kept,
      ['X_Old', 'stays'],
      ['Set-Cookie', 'a'],
      ['Set-Cookie', 'b'],
    ])
    stripResponse(headers)
    assert.deepEqual([...headers], [...kept, ['X_Old', 'stays'], ['Set-Cookie', 'a'], ['Set-Cookie', 'b']])
  })
})

describe('from trailers', () => {
  test('what could pass for a header that was checked is removed', () => {
    const trailers = HeaderList.of([
      ['Grpc-Status', '0'],
      ['Host', 'x'],
      ['Authorization', 'x'],
      ['Content-Length', '1'],
      ['X-Forwarded-For', '1.1.1.1'],
      ['Postern-Auth-User-Id', '1'],
      ['postern_auth_user_id', '1'],
      ['Ngrok-Error-Code', 'ERR_NGROK_3200'],
    ])
    assert.deepEqual([...(stripTrailers(trailers) ?? [])], [['Grpc-Status', '0']])
  })

  test('an empty rest means no trailers', () => {
    assert.equal(stripTrailers(HeaderList.of([['Host', 'x']])), undefined)
    assert.equal(stripTrailers(undefined), undefined)
  })
})

describe('upstream', () => {
  const forwarded = (headers: Pairs): Pairs => {
    const peer = { ip: '2.2.2.2', port: 1, serverIp: '3.3.3.3', serverPort: 443, startedAt: 0 }
    const ctx = { headers: HeaderList.of(headers), authority: 'A.example:8443', peer, scheme: 'https' }
    return [...forwardedHeaders(ctx as unknown as RequestContext)] // the parts of it that are read
  }

  test('headers describe the visit', () => {
    assert.deepEqual(forwarded([['Accept', '*/*']]), [
      ['Host', 'A.example:8443'],
      ['Accept', '*/*'],
      ['X-Forwarded-For', '2.2.2.2'],
      ['X-Forwarded-Proto', 'https'],
      ['X-Forwarded-Host', 'A.example:8443'],
    ])
  })

  test('earlier values come first, in one line', () => {
    assert.deepEqual(
      forwarded([
        ['x-forwarded-for', '1.1.1.1'],
        ['X-Forwarded-For', '1.1.1.2, 1.1.1.3'],
        ['x-forwarded-proto', 'http'],
        ['x-forwarded-host', 'other.example'],
      ]),
      [
        ['Host', 'A.example:8443'],
        ['x-forwarded-host', 'other.example'],
        ['X-Forwarded-For', '1.1.1.1, 1.1.1.2, 1.1.1.3, 2.2.2.2'],
        ['X-Forwarded-Proto', 'http, https'],
      ],
    )
  })
})
