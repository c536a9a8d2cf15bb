-- The form of the agent's answers over A2A.

-- The first answer decides. A bare Message is one only if nothing of the work was shown before it: no progress, artifact
-- or question.
function store_a2a_form()
  local is_shown = record.pace_at or record.answered or chunks
  record.a2a_form = is_shown and 'task' or cmd.a2a_form
end
