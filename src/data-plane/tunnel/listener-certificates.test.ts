import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ListenerCertificates, type ListenerTlsSettings } from './listener-certificates.ts'

const settings: ListenerTlsSettings = {
  names: ['localhost', 'tunnels.test', 'agents.test'],
  isPublic: false,
  tlsMinVersion: 'TLSv1.2',
}

const pairOf = (cert: string) => ({ cert, key: 'key' })

/** Ingresses by name, and whether their certificates are shown. All names but `bare.…` have one from a public authority. */
function shownWith(
  ingresses: Readonly<Record<string, boolean>>,
  { known = Promise.resolve(), ...changed }: Partial<ListenerTlsSettings> & { readonly known?: Promise<void> } = {},
) {
  return new ListenerCertificates({
    settings: { ...settings, ...changed },
    authority: { issue: (names) => pairOf(names.join(' ')) },
    certificates: {
      findNamed: (name) => (name.startsWith('bare.') ? undefined : pairOf(`public ${name}`)),
      findOwn: (name) => pairOf(`own ${name}`),
    },
    uploaded: { known },
    ingresses: {
      get: (name) => (Object.hasOwn(ingresses, name) ? { isPublic: ingresses[name] === true } : undefined),
      hasPublic: Object.values(ingresses).includes(true),
    },
  })
}

const shownFor = (shown: ListenerCertificates, name: string) => shown.shown().certificateFor(name)?.cert

test('an ingress with a public certificate shows it, or our own until there is one', () => {
  const shown = shownWith({ 'a.test': true, 'bare.test': true, 'own.test': false })
  assert.equal(shownFor(shown, 'a.test'), 'public a.test')
  assert.equal(shownFor(shown, 'bare.test'), 'own bare.test')
  assert.equal(shownFor(shown, 'own.test'), 'own own.test')
  assert.equal(shownFor(shown, 'stranger.test'), undefined, 'the certificate of the listener')
  assert.equal(shown.shown().certificate.cert, 'localhost tunnels.test agents.test')
})

test('an ingress does not change the certificate for a name of the settings, even when these change', () => {
  const shown = shownWith({ 'agents.test': true, 'tunnels.test': true, 'a.test': true })
  assert.deepEqual([shownFor(shown, 'agents.test'), shownFor(shown, 'tunnels.test')], [undefined, undefined])
  const used: string[] = []
  const stop = shown.keepUp({ useCertificate: ({ cert }, version) => used.push(version, cert) })
  shown.use({ ...settings, names: ['a.test'], tlsMinVersion: 'TLSv1.3' })
  stop()
  assert.deepEqual([shownFor(shown, 'a.test'), shownFor(shown, 'agents.test')], [undefined, 'public agents.test'])
  assert.deepEqual(used, ['TLSv1.3', 'a.test'])
})

test('with `public`, any name is shown with its certificate, and an ingress without one with our own', () => {
  const shown = shownWith({ 'own.test': false, 'bare.test': false }, { isPublic: true })
  const names = ['agents.test', 'stranger.test', 'own.test', 'bare.test', 'bare.stranger']
  const expected = ['public agents.test', 'public stranger.test', 'public own.test', 'own bare.test', undefined]
  assert.deepEqual(
    names.map((name) => shownFor(shown, name)),
    expected,
  )
})

test('agents wait for certificates only where one is shown that is not our own', async () => {
  const received = Promise.withResolvers<void>()
  const { promise: known } = received
  const isReady = (shown: ListenerCertificates) =>
    Promise.race([shown.ready().then(() => true), new Promise((resolve) => setImmediate(resolve, false))])
  const waiting = shownWith({ 'a.test': true }, { known })
  assert.equal(await isReady(waiting), false)
  assert.equal(await isReady(shownWith({}, { known, isPublic: true })), false)
  assert.equal(await isReady(shownWith({ 'own.test': false }, { known })), true)
  received.resolve()
  assert.equal(await isReady(waiting), true)
})
