/** GitHub, with the organizations and teams that a user is in. */
import { type Ask, field, type Json, listOf, type OAuthKind, textOf } from '../kind.ts'

const API = 'https://api.github.com'

const PAGE_SIZE = 100
/** Pages of a list that are read at most. */
const MAX_PAGES = 10

const headers = { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' }

export const github: OAuthKind = {
  authorizeUrl: 'https://github.com/login/oauth/authorize',
  tokenUrl: 'https://github.com/login/oauth/access_token',
  usesPkce: true,
  scopes: ({ teams, organizations }) => ['read:user', 'user:email', ...(teams || organizations ? ['read:org'] : [])],
  forced: { prompt: 'select_account' },
  async readProfile(ask, { teams, organizations }) {
    const user = await ask(`${API}/user`, headers)
    const username = textOf(user, 'login')
    return {
      user: { id: textOf(user, 'id'), name: textOf(user, 'name') || username, email: await mainAddress(ask), username },
      organizations: organizations ? (await pages(ask, '/user/orgs')).map((each) => textOf(each, 'login')) : [],
      teams: teams ? (await pages(ask, '/user/teams')).flatMap(teamNames) : [],
    }
  },
}

/** Anybody can write any address into the profile; of this list we know which are verified. */
async function mainAddress(ask: Ask): Promise<string> {
  const verified = (await pages(ask, '/user/emails')).filter((each) => field(each, 'verified') === true)
  const main = verified.find((each) => field(each, 'primary') === true) ?? verified[0]
  return textOf(main, 'email')
}

/** By its name and by its number. */
function teamNames(team: Json): string[] {
  const organization = textOf(field(team, 'organization'), 'login')
  const slug = textOf(team, 'slug')
  return [textOf(team, 'id'), ...(organization !== '' && slug !== '' ? [`${organization}/${slug}`] : [])]
}

async function pages(ask: Ask, path: string): Promise<Json[]> {
  const all: Json[] = []
  for (let page = 1; page <= MAX_PAGES; page++) {
    const entries = listOf(await ask(`${API}${path}?per_page=${PAGE_SIZE}&page=${page}`, headers))
    all.push(...entries)
    if (entries.length < PAGE_SIZE) break
  }
  return all
}
