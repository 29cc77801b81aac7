/** What removing a resource is called: most are deleted, a capture is ended. */

interface ResourceEnding {
  readonly verb: string
  readonly question: string
  /** Follows the name of the resource. */
  readonly outcome: string
}

const deletion: ResourceEnding = {
  verb: 'Delete',
  question: 'Delete this?',
  outcome: 'will be deleted immediately. This cannot be undone.',
}

/** By the path of the list. */
const others: Readonly<Record<string, ResourceEnding>> = {
  '/captures': {
    verb: 'End',
    question: 'End this capture?',
    outcome: 'will end immediately. What it captured stays until newer exchanges need the space.',
  },
}

export function endingOf(path: string): ResourceEnding {
  return Object.hasOwn(others, path) ? (others[path] ?? deletion) : deletion
}
