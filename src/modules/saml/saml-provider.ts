/** An identity provider as logins see it: a signed request by the redirect binding, and an answer by the POST binding. */
import { createHash, randomUUID } from 'node:crypto'
import { isFault, type LoginProvider } from '../login/login-provider.ts'
import type { RequestContext } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { assertionConsumer, requestIdOf } from './acs.ts'
import { addressesBeside, addressesOf, paths } from './addresses.ts'
import type { SamlSettings } from './form.ts'
import { identityProvider } from './identity-provider.ts'
import { logoutPages } from './logout.ts'
import { loginRequestUrl, ownMetadata } from './messages.ts'
import { xmlPage } from './responses.ts'
import { asDown } from './saml-faults.ts'

export function samlProvider(settings: SamlSettings, tools: ModuleTools): LoginProvider {
  const { idp_metadata, idp_metadata_url, force_authn, authorized_groups, nameid_format: nameIdFormat } = settings
  const { now, requestKey } = tools
  const provider = identityProvider(settings, tools)
  const identity = digest(['saml', idp_metadata_url || writtenEntityId(idp_metadata), nameIdFormat])
  const rules = authorized_groups.length > 0 ? digest(authorized_groups) : ''
  const id = randomUUID()
  const parts = {
    provider,
    // One owner for each visitor: a visitor who sends a lot delays nobody else.
    ownerOf: ({ peer }: RequestContext) => `${id} ${peer.ip}`,
  }
  const acs = assertionConsumer(settings, { ...parts, seal: `${identity} ${rules}` }, tools)

  return {
    name: 'saml',
    clientId: '',
    identity,
    rules,
    checkEveryMs: 0,
    callbackPaths: [paths.acs],
    variables: ({ id }) => [['saml.subject', id]],
    pages: [
      ...acs.pages,
      {
        path: paths.metadata,
        methods: ['GET', 'HEAD'],
        async answer(ctx) {
          const { certificate } = await requestKey()
          return xmlPage(ownMetadata({ addresses: addressesOf(ctx), certificate, nameIdFormat }))
        },
      },
      ...logoutPages(parts, tools),
    ],

    async begin({ state, redirectUri, isForced }) {
      const idp = await provider().catch(asDown)
      if (isFault(idp)) return idp
      const addresses = addressesBeside(redirectUri)
      const sending = { to: idp.loginUrl, addresses, requestKey: await requestKey(), relayState: state, now: now() }
      const request = { id: requestIdOf(state), nameIdFormat, isForced: isForced || force_authn }
      return { location: await loginRequestUrl(sending, request), kept: {} }
    },

    finish: ({ state, params }) => acs.finish(params.get('answer') ?? '', state),

    /** SAML has no way to ask about a user later, so the visitor must log in again. */
    check: () => Promise.resolve({ fault: 'log_in_again', reason: 'the authorized groups changed' }),
  }
}

/** Only for a digest; the document is checked when it is read. */
function writtenEntityId(metadata: string): string {
  return /\sentityID\s*=\s*(["'])(.*?)\1/s.exec(metadata)?.[2] ?? ''
}

function digest(parts: unknown): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}
