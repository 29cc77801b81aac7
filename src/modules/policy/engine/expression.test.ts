import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BadExpression } from './cel.ts'
import { checkExpression } from './expression.ts'
import { ownLists, type Site } from './policy-phases.ts'

const tcp: Site = { place: 'tcp', phase: 'connect', lists: ownLists }
const tls: Site = { place: 'tls', phase: 'connect', lists: ownLists }
const request: Site = { place: 'route', phase: 'request', lists: ownLists }
const response: Site = { place: 'route', phase: 'response', lists: ownLists }

function condition(text: string, site = request): number {
  return checkExpression(text, site, { condition: true })
}

const good: readonly (readonly [string, Site])[] = [
  ["conn.client_ip == '1.2.3.4'", tcp],
  ["inCidrRanges(conn.client_ip, ['10.0.0.0/8', '::1/128'])", tcp],
  ["conn.client_ip.geo.location.country_code in ['DE', 'AT']", tcp],
  ["conn.tls.client.subject.common_name == 'x' || conn.tls.sni.endsWith('.example')", tls],
  ["actions.ngrok.restrict_ips.action == 'deny'", tls],
  ["req.headers['x-a'].exists(h, h.startsWith('b'))", request],
  ["req.headers.map(k, k.lower()).filter(k, k.matches('^x-')).size() > 2", request],
  ["has(req.headers.x) && !has(req.cookies['a'][0].value)", request],
  ["req.cookies['a'].exists_one(c, c.name == 'a' && c.value.size() > 3)", request],
  ["req.url.path.startsWith('/a') ? hasQueryParam('x') : vars.allowed", request],
  ["timestamp(time.now) - conn.ts.start > duration('1s')", request],
  ["base64.encode(b'x') + hash.sha256('a', 'hex') != strings.quote('y')", request],
  ['[1, 2].all(a, [3].all(b, [4].exists(c, a + b > c)))', request],
  ["type(vars.x) == string && {'a': 1}['a'] == 1", request],
  ['// a ( in a comment\n.req.content_length > 10', request],
  [`'${'('.repeat(100)}' != r'\\' && """a"b""" != ''`, request],
  ["res.status_code >= 500 && getResHeader('x').size() == 0 && req.method == 'GET'", response],
  ["res.StatusCode == '200' && res.StatusCode.startsWith('2')", response],
  ["[req].all(req, req.method == 'GET')", request],
  ["vars.x == 1 || vars.x == 'a' || vars.x + 1 == 2 || vars.list[0] > 'b' || vars.y", request],
  ["json.decode('{}').a == 1 && url.parse(req.url).port == '443' && dyn('a') != 1", request],
  ['1 == 1.0 && 1u < 2.5 && conn.client_port > 0.5 && req.content_length != null', request],
  ["[1, 'a', true].exists(x, x == 'a') && [] == [1] && [[1], []].flatten().exists(x, x > 0)", request],
  ["(has(vars.x) ? vars.x : 'a') == 'a' && (true ? 1 : 2.5) < 3", request],
  ["duration('1s') + duration('1s') < timestamp(time.now) - conn.ts.start", request],
  ["'a' in {'a': 1} && 1 in {1: 2} && 'x' in req.headers && 'b' in req.url.query_params['a']", request],
  ["req.headers['x'].map(h, h.size()).sort()[0] > 1 && b'a' + b'b' == b'ab' && -1.5 < 0.0", request],
  [Array.from({ length: 120 }, (_, i) => `req.headers['x-${i}'][0] == 'a'`).join(' || '), request],
]

for (const [text, site] of good) {
  test(`${site.place} ${site.phase} takes ${text.slice(0, 80)}`, () => void condition(text, site))
}

const refused: readonly (readonly [string, Site, RegExp])[] = [
  ["reqq.method == ''", request, /unknown variable, `reqq`; did you mean `req`/],
  ["conn.ClientIp == ''", request, /unknown field of `conn`, `ClientIp`/],
  ['res.StatusCode == 200', response, /./],
  ["req.url.pth == ''", request, /of `req\.url`, `pth`; did you mean `path`/],
  ["conn['client_ipp'] == ''", request, /did you mean `client_ip`/],
  ["req.cookies['a'].all(c, c.valu == '')", request, /of `c`, `valu`; did you mean `value`/],
  ["actions.ngrok.restrict_ip.action == ''", request, /did you mean `restrict_ips`/],
  ['conn.client_port.x == 1', request, /is a number and has no fields/],
  ["conn.tls.sni == ''", tcp, /`tls` of `conn`, which a TCP edge does not have/],
  ["conn['tls'].sni == ''", tcp, /which a TCP edge does not have/],
  ["req.method == ''", tls, /`req`, which only routes .* a TLS edge sees connections/],
  ['res.status_code == 1', tcp, /`res`, which only routes/],
  ['conn.bytes_in == 1', tls, /`bytes_in` of `conn`, which only routes/],
  ['vars.x == 1', tcp, /`vars`, which only `set-vars` fills/],
  ['res.status_code == 1', request, /`res`, .* move the rule to `outbound`/],
  ['x', request, /unknown variable, `x`; known are .*`conn`/],
  ['[1].all(x, x > 0) && x > 0', request, /unknown variable, `x`/],
  ["req.method.starsWith('a')", request, /unknown function, `starsWith`; did you mean `startsWith`/],
  ["base64.encod('a') == ''", request, /did you mean `base64\.encode`/],
  ["req.method.startsWith('a', 'b')", request, /`startsWith` with 2 arguments, but it takes 1/],
  ["'a'.replace('b') == ''", request, /with 1 arguments, but it takes 2 to 3/],
  ["startsWith(req.method, 'a')", request, /write `value\.startsWith/],
  ["conn.client_ip.inCidrRange('::/0')", request, /write `inCidrRange\(…\)`/],
  ['req.headers.all(h)', request, /write `list\.all\(x, condition\)`/],
  ['has(req)', request, /write `has\(value\.field\)`/],
  ["hasReqHeader('a')", tcp, /only on routes/],
  ["hasResHeader('a')", request, /only in `outbound` of routes/],
  ["req.url.path.matches('(?=a)')", request, /pattern in `matches` that is not a valid RE2/],
  ["matches(req.url.path, '(')", request, /not a valid RE2/],
  [`req.url.path.matches('(?:${'a'.repeat(900)}){1000}')`, request, /too costly/],
  ["'GET'", request, /gives a string, but must be true or false/],
  ['1 + 2', request, /must be true or false/],
  ['req.method', request, /gives a string/],
  ["true ? 'a' : 1", request, /gives a string or a number, as `\?` decides/],
  ["1 + 'a' == 2", request, /puts `\+` between a number and a string; convert one of them \(line 1, column 3\)/],
  ['1 + 1.5 > 2.0', request, /between a number and a number with a fraction/],
  ['1u + 1 > 2', request, /between an unsigned number and a number/],
  ['req.method == 1', request, /compares a string with a number, which are never equal \(line 1, column 12\)/],
  ["req.headers['a'][0] != 5", request, /compares a string with a number/],
  ["conn.client_port == '443'", request, /compares a number with a string/],
  ['true &&\n  req.method == 1', request, /\(line 2, column 14\)/],
  ['req.method > 1', request, /puts `>` between a string and a number, which have no order/],
  ['req.headers > req.headers', request, /which have no order/],
  ["conn.client_port in ['a', 'b']", request, /looks for a number in a list of which each is a string/],
  ["'a' in req.method", request, /looks for a string in a string/],
  ["-req.method == ''", request, /puts `-` before a string/],
  ['!req.method', request, /puts a string where `!` needs a condition/],
  ['req.method.startsWith(1)', request, /calls `startsWith` with a number, but it takes a string/],
  ["conn.client_port.startsWith('4')", request, /calls `startsWith` on a number, but it takes a string/],
  ["'abc'.substring('a') == ''", request, /`substring` with a string as argument 1, but it takes a number/],
  ["inCidrRange(conn.client_ip, ['10.0.0.0/8'])", request, /with a list as argument 2, but it takes a string/],
  ["req.headers['a'] == 'b'", request, /compares a list with a string/],
  ["req.headers['a']['b'] == 'c'", request, /asks a list for a string/],
  ["req.method[0] == 'G'", request, /asks `req.method` for an entry, but it is a string/],
  ['{1.5: 2} == {}', request, /as the key of a map/],
  ["[1, 2].map(x, x * 2).exists(x, x == 'a')", request, /compares a number with a string/],
  ["req.cookies['a'].exists(c, c.value == 1)", request, /compares a string with a number/],
  ["timestamp(time.now) > '2024'", request, /between a timestamp and a string/],
  ["duration('1s') * 2 > duration('1s')", request, /puts `\*` between a duration and a number/],
  ["req.headers['x'].all(h, h)", request, /puts a string where `&&` needs a condition/],
  ["req.headers['x'].exists_one(h, h)", request, /puts a string where `\?` needs a condition/],
  ['size(5) > 1', request, /calls `size` with a number/],
  ['res.status_code.x == 1', response, /is a number and has no fields \(line 1, column 16\)/],
  ['req.method && true', request, /puts a string where `&&` needs a condition/],
  ['req.method.all(x, true)', request, /loops over a string/],
  ['Foo{a: 1} == 1', request, /makes a `Foo`/],
  ['[1].all(a, [1].all(b, [1].all(c, [1].all(d, true))))', request, /over 3 loops/],
  ["req.method == 'a' b", request, /not a CEL expression: unexpected b at line 1, column 19/],
  ['in', request, /not a CEL expression: reserved identifier at line 1/],
  ['', request, /not a CEL expression/],
  ["'a\\'", request, /string that is not closed at column 1/],
  ['(true', request, /leaves 1 bracket open/],
  ['true)', request, /closes a bracket at column 5/],
]

for (const [text, site, message] of refused) {
  test(`${site.place} ${site.phase} refuses ${text.slice(0, 80)}`, () => {
    assert.throws(
      () => condition(text, site),
      (error) => error instanceof BadExpression && message.test(error.message),
    )
  })
}

test('an expression that is not a condition may give any kind of value', () => {
  checkExpression('conn.client_ip', tcp, { condition: false })
  checkExpression("'a' + req.host", request, { condition: false })
})

/** Fills 4 KiB. */
const full = (unit: string, end = ''): string => unit.repeat(Math.floor((4096 - end.length) / unit.length)) + end
const around = (n: number, open: string, middle: string, close: string): string =>
  open.repeat(n) + middle + close.repeat(n)

const hostile = {
  'open brackets': full('('),
  brackets: around(2000, '(', 'a', ')'),
  'brackets around an error': around(32, '(', 'a b', ')'),
  'brackets hidden behind strings': full('[")",'),
  lists: around(2000, '[', '', ']'),
  maps: around(32, '{1:', '@', '}'),
  'a chain of fields': `a${full('.a', ' ')}`,
  'a chain of fields within bounds': `a${'.a'.repeat(700)}`,
  'a chain of methods': `''${'.trim()'.repeat(290)}`,
  not: full('!', 'a'),
  'not within bounds': `${'!'.repeat(1400)}true`,
  minus: full('-', '1'),
  terms: full('a+', 'a'),
  'terms within bounds': `${'1+'.repeat(700)}1`,
  choices: `${'true?1:'.repeat(370)}1`,
  conditions: `${'true&&'.repeat(680)}true`,
  loops: around(31, 'a.all(x,', 'a', ')'),
  'open strings': full('"\\'),
  'triple quotes': full(`"""'''`),
  escapes: `'${full('\\x41', '')}'`,
  digits: full('9'),
  blanks: full(' ', '@'),
  names: full('a'),
  'a costly pattern': `'a'.matches('${'a{1000}'.repeat(140)}')`,
  'classes in a pattern': `'a'.matches('${'['.repeat(1000)}')`,
}

for (const [name, text] of Object.entries(hostile)) {
  test(`checks quickly: ${name}`, () => {
    attempt(text)
    const before = process.cpuUsage()
    attempt(text)
    const { user } = process.cpuUsage(before)
    // Some 15 ms at most on a slow machine; what these guard against takes seconds, or the whole stack.
    assert.ok(user < 300_000, `took ${user} µs`)
  })
}

/** An expression may be accepted or refused, but only with a `BadExpression`. */
function attempt(text: string): void {
  try {
    condition(text)
  } catch (error) {
    if (!(error instanceof BadExpression)) throw error
    assert.ok(error.message.length < 500, error.message)
  }
}

test('any text is accepted or refused with a BadExpression', () => {
  const words = [
    'req',
    '.',
    'headers',
    '[',
    ']',
    '(',
    ')',
    '{',
    '}',
    "'a'",
    '"',
    "'",
    '\\',
    '&&',
    '!',
    '==',
    '1',
    ' ',
    '?',
    ':',
  ]
  const more = [
    ',',
    'all',
    'exists',
    'map',
    'x',
    'has',
    'matches',
    '@',
    '__proto__',
    'constructor',
    '//',
    '\n',
    'r',
    'b',
    '$',
    '+',
    '-',
  ]
  const soup = fc.array(fc.constantFrom(...words, ...more), { maxLength: 60 }).map((parts) => parts.join(''))
  fc.assert(fc.property(fc.oneof(soup, fc.string({ unit: 'binary', maxLength: 80 })), attempt), { numRuns: 500 })
})

test('a mutated expression is accepted or refused with a BadExpression', () => {
  const base = fc.constantFrom(...good.map(([text]) => text).filter((text) => text.length < 200))
  const changed = fc.tuple(base, fc.nat(200), fc.nat(20), fc.string({ maxLength: 5 })).map(([text, at, drop, add]) => {
    return text.slice(0, at) + add + text.slice(at + drop)
  })
  fc.assert(fc.property(changed, attempt), { numRuns: 500 })
})
