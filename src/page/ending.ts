/** What the end of a resource is called: most are deleted, and some just end. */

export interface ResourceEnding {
  readonly verb: string
  readonly question: string
  /** What follows the name of the resource. */
  readonly outcome: string
}

const deletion: ResourceEnding = {
  verb: 'Delete',
  question: 'Delete it?',
  outcome: 'is deleted at once, and cannot be brought back.',
}

/** By the path of the list. */
const others: Readonly<Record<string, ResourceEnding>> = {
  '/captures': {
    verb: 'End',
    question: 'End it?',
    outcome: 'ends at once. What it has kept stays until newer exchanges need the room.',
  },
}

export function endingOf(path: string): ResourceEnding {
  return Object.hasOwn(others, path) ? (others[path] ?? deletion) : deletion
}
