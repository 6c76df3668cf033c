"""The names of the features of each data set, in the order of its arrays."""

HIGGS_LOW = (
    *("lepton_pT", "lepton_eta", "lepton_phi", "missing_energy_magnitude", "missing_energy_phi"),
    *(f"jet_{jet}_{part}" for jet in (1, 2, 3, 4) for part in ("pt", "eta", "phi", "btag")),
)
HIGGS_HIGH = ("m_jj", "m_jjj", "m_lv", "m_jlv", "m_bb", "m_wbb", "m_wwbb")
HIGGS = HIGGS_LOW + HIGGS_HIGH
# Of track 2 and of OpenML's table; the eleventh field of the LIBSVM text is the user's profile.
TRACK2 = (
    *("url_hash", "ad_id", "advertiser_id", "depth", "position", "query_id"),
    *("keyword_id", "title_id", "description_id", "user_id"),
)
KDD12 = (*TRACK2, "profile")
DIABETES = (
    *("HighBP", "HighChol", "CholCheck", "BMI", "Smoker", "Stroke", "HeartDiseaseorAttack"),
    *("PhysActivity", "Fruits", "Veggies", "HvyAlcoholConsump", "AnyHealthcare", "NoDocbcCost"),
    *("GenHlth", "MentHlth", "PhysHlth", "DiffWalk", "Sex", "Age", "Education", "Income"),
)
