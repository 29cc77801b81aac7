/** Opens what decides who may log in as an agent, and who may have which address. */
import type { BindRules } from '../../control-plane/directory/grant-binds.ts'
import { AnswersWhileDown } from '../../control-plane/mirrors/answers-while-down.ts'
import type { SharedCalls } from '../../control-plane/mirrors/shared-calls.ts'
import { AgentCredentials } from '../../control-plane/records/find-agent-credentials.ts'
import { tokenHash } from '../../control-plane/records/find-caller.ts'
import { findSshCertificate } from '../../control-plane/records/find-ssh-certificates.ts'
import { openProvenNames, type ProvenNames } from '../../control-plane/records/proven-names.ts'
import { TakenAddresses } from '../../control-plane/records/taken-addresses.ts'
import { recordLookUp } from '../../lib/net/record-look-up.ts'
import { isFirstForm } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import type { AgentCredential } from '../../model/agent-credential.ts'
import type { AddressHolders } from '../../model/endpoint.ts'
import type { ControlParts, OpeningControl } from './opening-control.ts'

const NOBODY: AddressHolders = { edgeId: undefined, reservationId: undefined }

/** The prefix of contexts for what agents carry; nothing else is unsealed for a data plane. */
const OF_AGENTS = 'agents/'

/** Who may have names outside of our domain; undefined when they need not be proven. */
export async function openNames({ settings, store, now, log }: OpeningControl): Promise<ProvenNames | undefined> {
  const { domain, verifyDomains, dnsServers } = settings
  return verifyDomains ? openProvenNames({ store, domain, lookUp: recordLookUp(dnsServers), now, log }) : undefined
}

export function openAdmission(
  { settings, store, sealer }: OpeningControl,
  { documents, proven, cluster }: Pick<ControlParts, 'documents' | 'proven' | 'cluster'>,
) {
  const { domain } = settings
  // Remembered answers, which let agents in again while the database is down.
  const tokens = new AnswersWhileDown<AgentCredential>()
  const inUse = new AnswersWhileDown<AgentCredential>()
  const holders = new AnswersWhileDown<AddressHolders>()
  const agentCredentials = new AgentCredentials(store)
  const inUseNow = (id: string) => inUse.answer(id, () => agentCredentials.current(id))
  const addresses = new TakenAddresses(store)
  const holdersOfName = async (name: string, owner: string): Promise<AddressHolders> => {
    const held = await addresses.holdersOfName(name)
    // A name was proven when it was reserved, unless an admin reserved it.
    const isHeld = held.edgeId !== undefined || held.reservationId !== undefined || held.wildcard !== undefined
    return isHeld || !proven ? held : { ...held, unproven: await proven.whyNot(name, { owner }) }
  }
  const holdersOf: BindRules['holders'] = async ({ host, port }, owner) =>
    (await (port === undefined
      ? holders.answer(host, () => holdersOfName(host, owner))
      : holders.answer(`:${port}`, () => addresses.holdersOfPort(port)))) ?? NOBODY

  return {
    bindRules: {
      credential: inUseNow,
      modules: (owner, bind) => documents.bindModules(owner, bind),
      holders: holdersOf,
      whyTakenInCluster: async (claim) => cluster?.whyTaken(claim),
      isFreedInCluster: async (claim) => (await cluster?.isFreed(claim)) ?? false,
    } satisfies Partial<BindRules>,
    calls: {
      findCredential: ({ token }) => tokens.fresh(tokenHash(token), () => agentCredentials.find(new Secret(token))),
      recallCredential: ({ token, sessionId }) =>
        cluster && sessionId !== undefined && !cluster.knows(sessionId) ? undefined : tokens.recall(tokenHash(token)),
      findSshCredential: ({ fingerprint }) => agentCredentials.findSsh(fingerprint),
      findSshCertificate: ({ digest }) => findSshCertificate(store, digest),
      currentCredential: ({ id }) => inUseNow(id),
      openFormerSeal: async ({ text, context }) => {
        if (!context.startsWith(OF_AGENTS)) return undefined
        return isFirstForm(text) ? sealer.openFirstForm(text) : sealer.open(text, context)
      },
      bindModules: async ({ credentialId, proto, opts }) =>
        documents.bindModules((await inUseNow(credentialId))?.ownerId ?? '', { proto, opts }),
      holdersOfName: (host) => holdersOf({ host, port: undefined }, ''),
      holdersOfPort: (port) => holdersOf({ host: domain, port }, ''),
      lookUpPlaces: async (asked) => (await cluster?.lookUps.addresses(asked)) ?? [],
      lookUpGroup: async (labels) => (await cluster?.lookUps.group(labels)) ?? [],
      answerNode: async ({ value }) => cluster?.answer(value),
    } satisfies Partial<SharedCalls>,
  }
}
