import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import type { ModuleConfig } from '../module.ts'
import { oauth } from './form.ts'

function put(body: unknown, at = ''): ModuleConfig {
  assert.ok(oauth.at.route && oauth.accept)
  return oauth.accept(check(oauth.at.route, body), { place: 'route', at })
}

/** A body with one provider, what it requires, and `more`. */
function naming(name: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { provider: { [name]: { client_id: 'app', client_secret: 'hush-hush', ...more } } }
}

const plain = { client_id: 'app', client_secret: 'hush-hush', scopes: [], email_addresses: [], email_domains: [] }

/** Each provider, and its lists beyond the common ones. */
const known: Record<string, Record<string, readonly string[]>> = {
  amazon: {},
  facebook: {},
  github: { teams: [], organizations: [] },
  gitlab: {},
  google: { groups: [] },
  linkedin: {},
  microsoft: {},
  twitch: {},
}

for (const [name, more] of Object.entries(known)) {
  test(`accepts ${name}, with defaults for omitted fields`, () => {
    assert.deepEqual(put(naming(name)), {
      enabled: true,
      provider: { [name]: { ...plain, ...more } },
      options_passthrough: false,
      cookie_prefix: '',
      inactivity_timeout: 0,
      maximum_duration: 0,
      auth_check_interval: 0,
    })
  })
}

test('refuses unknown providers, and lists that a provider does not have', () => {
  assert.throws(() => put(naming('gitub')), { field: 'provider.gitub', message: /did you mean `github`/ })
  assert.throws(() => put(naming('google', { teams: [] })), { field: 'provider.google.teams', kind: 'unknown_field' })
  assert.throws(() => put(naming('github', { groups: [] })), { field: 'provider.github.groups', kind: 'unknown_field' })
})

test('an enabled module names one provider; a disabled one may name none', () => {
  for (const provider of [undefined, null, {}, { github: null }]) {
    assert.deepEqual(put({ enabled: false, provider }).provider, {})
    assert.throws(() => put({ provider }, 'oauth.'), { code: 'PROVIDER_MISSING', message: /`oauth\.provider`/ })
  }
})

test('two providers are refused by name, on a disabled module too', () => {
  const provider = { google: {}, github: {}, twitch: null }
  for (const enabled of [true, false]) {
    assert.throws(() => put({ enabled, provider }, 'oauth.'), {
      code: 'SEVERAL_PROVIDERS',
      message: /`oauth\.provider` .*: `github`, `google`; keep one/,
    })
  }
})

test('an enabled module needs the application at its provider; a disabled one may lack it', () => {
  assert.deepEqual(put({ enabled: false, provider: { twitch: {} } }).provider, {
    twitch: { ...plain, client_id: '', client_secret: '' },
  })
  assert.throws(() => put({ provider: { twitch: {} } }, 'oauth.'), {
    field: 'oauth.provider.twitch.client_id',
    kind: 'required',
    message: /`oauth\.provider\.twitch\.client_id`, `oauth\.provider\.twitch\.client_secret`, since .* application/,
  })
  const alone = { client_id: 'client_secret', client_secret: 'client_id' }
  for (const [given, missing] of Object.entries(alone)) {
    const provider = { github: { [given]: 'hush-hush', [missing]: '' } }
    assert.throws(() => put({ provider }), { field: `provider.github.${missing}`, kind: 'required' })
  }
})

const entries: Record<string, { on: string; good: readonly string[]; bad: readonly string[] }> = {
  scopes: {
    on: 'facebook',
    good: ['email', 'https://www.example.com/auth/userinfo.email', 'read:org'],
    bad: ['', 'two words', 'a"b', 'é'],
  },
  email_addresses: {
    on: 'amazon',
    good: ['ada@example.com', 'a.b+c@mail.example.com', "o'neil@xn--bcher-kva.example", 'größe@example.com'],
    bad: [
      '',
      'ada',
      'Ada@example.com',
      'ada@Example.com',
      'a b@example.com',
      'a@b@example.com',
      '@example.com',
      'ada@',
    ],
  },
  email_domains: {
    on: 'microsoft',
    good: ['example.com', 'mail.example.com', 'xn--bcher-kva.example'],
    bad: ['', 'Example.com', '@example.com', '*.example.com', 'example.com.', 'größe.de', '192.0.2.1', 'a..b', 'a b'],
  },
  teams: {
    on: 'github',
    good: ['acme/web', 'Acme-1/web_team.2', '12345'],
    bad: ['', 'acme', 'acme/', '/web', 'acme/web/x', 'acme /web', 'acme/wéb'],
  },
  organizations: { on: 'github', good: ['acme', 'Acme-1'], bad: ['', 'acme/web', 'a b', 'é'] },
  groups: { on: 'google', good: ['team@example.com'], bad: ['', 'team', 'Team@example.com'] },
}

for (const [name, { on, good, bad }] of Object.entries(entries)) {
  test(`${name} accepts only valid entries, on a disabled module too`, () => {
    assert.deepEqual(put(naming(on, { [name]: good })).provider, {
      [on]: { ...plain, ...known[on], [name]: good },
    })
    for (const entry of [...bad, `${'a'.repeat(260)}.com`, 'a\n']) {
      for (const enabled of [true, false]) {
        const body = { enabled, ...naming(on, { [name]: [good[0], entry] }) }
        assert.throws(() => put(body), { name: 'BadValue', field: `provider.${on}.${name}[1]` }, entry)
      }
    }
    assert.throws(() => put(naming(on, { [name]: Array(1001).fill('x') })), { field: `provider.${on}.${name}` })
  })
}

test('a list names each entry once, whatever its case', () => {
  const twice = { email_addresses: ['a@b.co', 'a@b.co'], teams: ['acme/web', 'Acme/Web'], organizations: ['a', 'A'] }
  for (const [name, values] of Object.entries(twice)) {
    assert.throws(() => put(naming('github', { [name]: values })), { field: `provider.github.${name}[1]` })
  }
})

test('keeps times and the cookie prefix within bounds', () => {
  const times = {
    inactivity_timeout: 4_294_967_295,
    maximum_duration: 4_294_967_295,
    auth_check_interval: 4_294_967_295,
  }
  const { inactivity_timeout, maximum_duration, auth_check_interval } = put({ ...naming('github'), ...times })
  assert.deepEqual({ inactivity_timeout, maximum_duration, auth_check_interval }, times)
  const wrong = [
    { inactivity_timeout: -1 },
    { maximum_duration: 4_294_967_296 },
    { auth_check_interval: 1.5 },
    { auth_check_interval: 4_294_967_296 },
    { cookie_prefix: 'a-b' },
  ]
  for (const part of wrong) {
    assert.throws(() => put({ ...naming('github'), ...part }), { field: Object.keys(part)[0] }, JSON.stringify(part))
  }
})

test('never repeats a secret in a message', () => {
  const bodies = [
    naming('github', { client_id: '' }),
    naming('github', { teams: ['?'] }),
    { provider: { github: { client_secret: 'hush-hush' }, google: {} } },
  ]
  for (const body of bodies) {
    assert.throws(
      () => put(body),
      (error: Error) => !error.message.includes('hush-hush'),
    )
  }
})
