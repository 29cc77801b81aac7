/** GitHub, with the organizations and teams that a user is in. */
import { type AskProvider, field, type Json, listOf, type OAuthKind, textOf } from '../kind.ts'

const API = 'https://api.github.com'

const PAGE_SIZE = 100
/** The most pages of a list that are read. */
const MAX_PAGES = 10

const headers = { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' }

export const github: OAuthKind = {
  authorizeUrl: 'https://github.com/login/oauth/authorize',
  tokenUrl: 'https://github.com/login/oauth/access_token',
  usesPkce: true,
  scopes: ({ teams, organizations }) => ['read:user', 'user:email', ...(teams || organizations ? ['read:org'] : [])],
  forced: { prompt: 'select_account' },
  async readProfile(ask, { teams: wantsTeams, organizations: wantsOrganizations, lists }) {
    const user = await ask(`${API}/user`, headers)
    const username = textOf(user, 'login')
    const email = await mainAddress(ask)
    const organizations = wantsOrganizations
      ? (await pages(ask, '/user/orgs')).map((each) => textOf(each, 'login'))
      : []
    const teams = wantsTeams ? (await pages(ask, '/user/teams')).flatMap(readTeam) : []
    const team = firstListed(lists.teams, teams, ({ id, handle }) => [id, handle])
    const organization = firstListed(lists.organizations, organizations, (each) => [each]) ?? team?.organization
    return {
      user: { id: textOf(user, 'id'), name: textOf(user, 'name') || username, email, username },
      organizations,
      teams: teams.flatMap(({ id, handle }) => [id, handle]),
      userHeaders: {
        // The vendor's name for this header: its `user-id` for GitHub is what others call a user name.
        'postern-auth-github-user-id': username,
        ...(organization !== undefined && { 'postern-auth-github-organization': organization }),
        ...(team && { 'postern-auth-github-team': team.handle }),
      },
    }
  },
}

interface Team {
  readonly id: string
  readonly organization: string
  /** `organization/team` */
  readonly handle: string
}

/** The item of `has` that is first in `list`. */
function firstListed<T>(list: readonly string[] = [], has: readonly T[], names: (each: T) => string[]): T | undefined {
  for (const wanted of list) {
    const found = has.find((each) => names(each).some((name) => name.toLowerCase() === wanted.toLowerCase()))
    if (found !== undefined) return found
  }
  return undefined
}

/** The address in a GitHub profile can be anything; only this list says which addresses are verified. */
async function mainAddress(ask: AskProvider): Promise<string> {
  const verified = (await pages(ask, '/user/emails')).filter((each) => field(each, 'verified') === true)
  const main = verified.find((each) => field(each, 'primary') === true) ?? verified[0]
  return textOf(main, 'email')
}

function readTeam(team: Json): Team[] {
  const organization = textOf(field(team, 'organization'), 'login')
  const [id, slug] = [textOf(team, 'id'), textOf(team, 'slug')]
  return id === '' || organization === '' || slug === ''
    ? []
    : [{ id, organization, handle: `${organization}/${slug}` }]
}

async function pages(ask: AskProvider, path: string): Promise<Json[]> {
  const all: Json[] = []
  for (let page = 1; page <= MAX_PAGES; page++) {
    const entries = listOf(await ask(`${API}${path}?per_page=${PAGE_SIZE}&page=${page}`, headers))
    all.push(...entries)
    if (entries.length < PAGE_SIZE) break
  }
  return all
}
